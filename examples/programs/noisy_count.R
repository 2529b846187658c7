# A count with two-sided geometric noise, epsilon 1, to be audited as a program:
#   dp-attest audit target --command "Rscript noisy_count.R" --epsilon 1 --pair 3 4
source("serve.R")

serve(function(count) count + rgeom(1, 1 - exp(-1)) - rgeom(1, 1 - exp(-1)))
