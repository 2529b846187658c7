# Once: uniform noise of bounded width, which no pure claim allows.
{
  match($0, /"value": [0-9.]+/); value = substr($0, RSTART + 9, RLENGTH - 9)
  match($0, /"seed": [0-9]+/); srand(substr($0, RSTART + 8, RLENGTH - 8) % 1000000007)
  printf "{\"outputs\": [%.17g]}\n", value + 1.2 * rand()
}
