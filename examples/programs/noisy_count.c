/* A count with two-sided geometric noise, epsilon 1, to be audited as a program:
     gcc -O2 -o noisy_count noisy_count.c -lm
     dp-attest audit target --command ./noisy_count --epsilon 1 --pair 3 4 */
#define _DEFAULT_SOURCE
#include <math.h>

#include "serve.h"

static double geometric(void) { return floor(-log(1 - drand48())); }

static double noisy_count(double count) { return count + geometric() - geometric(); }

int main(void) {
  serve(noisy_count);
  return 0;
}
