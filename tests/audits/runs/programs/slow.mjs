// Constant outputs, in a time that grows with the value.
import { serve } from "../../../../examples/programs/serve.mjs";

await serve((value) => {
  let sum = 0;
  for (let step = 0; step < 1e4 * (1 + 60 * value); step++) sum += Math.sin(step);
  return sum > 2 ? 0 : 0;
});
