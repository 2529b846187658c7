/* Answers the requests of an audit; copy this file beside your program (docs/programs.md).
   The value is one number; drand48() draws from the seed of the request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void serve(double (*release)(double value)) {
  char *line = NULL;
  size_t capacity = 0;
  while (getline(&line, &capacity, stdin) > 0) {
    double value = strtod(strstr(line, "\"value\": ") + 9, NULL);
    long runs = strtol(strstr(line, "\"runs\": ") + 8, NULL, 10);
    srand48(strtoll(strstr(line, "\"seed\": ") + 8, NULL, 10));
    printf("{\"outputs\": [");
    for (long run = 0; run < runs; run++)
      printf("%s%.17g", run ? ", " : "", release(value));
    printf("]}\n");
    fflush(stdout);
  }
  free(line);
}
