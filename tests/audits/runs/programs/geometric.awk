# Once: two-sided geometric noise, as epsilon 1 needs.
function geometric() { return int(-log(1 - rand())) }
{
  match($0, /"value": [0-9.]+/); value = substr($0, RSTART + 9, RLENGTH - 9)
  match($0, /"seed": [0-9]+/); srand(substr($0, RSTART + 8, RLENGTH - 8) % 1000000007)
  rand()  # the first number after a seed is hardly random in some awks
  printf "{\"outputs\": [%d]}\n", value + geometric() - geometric()
}
