// Constant outputs, in a time that grows with the value.
import { serve } from "../../../../examples/programs/serve.mjs";

await serve((value) => {
  let sum = 0;
  for (let step = 0; step < 1e5 * (1 + 10 * value); step++) sum += Math.sin(step);
  return sum > 2 ? 0 : 0;
});
