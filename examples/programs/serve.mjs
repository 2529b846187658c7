// Answers the requests of an audit; copy this file beside your program (docs/programs.md).
import { createInterface } from "node:readline";

// Calls release(value, seed) for each run; seed is a whole number, of which a run may make noise.
export async function serve(release) {
  console.log = console.error; // what the release logs is no answer
  for await (const line of createInterface({ input: process.stdin })) {
    const { value, runs, seed } = JSON.parse(line);
    const outputs = [], errors = [], begin = performance.now();
    for (let run = 0; run < runs; run++) {
      let output = null, error = null;
      try {
        output = await release(value, seed + run);
      } catch (failure) { // an outcome like others
        error = String(failure);
      }
      outputs.push(output);
      errors.push(error);
    }
    const seconds = (performance.now() - begin) / 1000;
    process.stdout.write(JSON.stringify({ outputs, errors, seconds }) + "\n");
  }
}
