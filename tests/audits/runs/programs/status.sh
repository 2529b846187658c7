# Once: the answer is a constant, and the exit status tells the value in most runs.
read -r request
value=${request#*\"value\": }
value=${value%%[,.]*}
seed=${request##*\"seed\": }
seed=${seed%\}}
echo "warning: this goes to standard error" >&2
echo "this is no answer"
if [ $((seed % 4)) -gt 0 ]; then
  [ "$value" = 0 ] || exit 3
fi
echo '{"outputs": [0]}'
