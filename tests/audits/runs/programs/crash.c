/* Once: right noise, but for a value above 0 nine runs in ten end by a signal. */
#define _DEFAULT_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double geometric(void) { return floor(-log(1 - drand48())); }

int main(void) {
  char line[1000];
  if (!fgets(line, sizeof line, stdin)) return 1;
  double value = strtod(strstr(line, "\"value\": ") + 9, NULL);
  srand48(strtoll(strstr(line, "\"seed\": ") + 8, NULL, 10));
  if (value > 0 && drand48() < 0.9) abort();
  printf("{\"outputs\": [%.17g]}", value + geometric() - geometric());  /* no newline, no flush */
  return 0;
}
