/* Noise in whole tens: the last digit of the count is that of the value. */
#define _DEFAULT_SOURCE
#include <math.h>

#include "../../../../examples/programs/serve.h"

static double geometric(void) { return floor(-10 * log(1 - drand48())); }

static double release(double value) { return value + 10 * (geometric() - geometric()); }

int main(void) {
  serve(release);
  return 0;
}
