/* Laplace noise of the right scale, as a float is added to a float: low bits show the value. */
#define _DEFAULT_SOURCE
#include <math.h>

#include "../../../../examples/programs/serve.h"

static double release(double value) {
  return value + log(1 - drand48()) * (drand48() < 0.5 ? 1 : -1);
}

int main(void) {
  serve(release);
  return 0;
}
