// Laplace noise of half the scale that epsilon 1 needs.
import { serve } from "../../../../examples/programs/serve.mjs";

const laplace = () => Math.log(1 - Math.random()) * (Math.random() < 0.5 ? 1 : -1);

await serve((value) => value + 0.5 * laplace());
