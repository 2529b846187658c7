// A count with two-sided geometric noise, epsilon 1, to be audited as a program:
//   dp-attest audit target --command "node noisy_count.mjs" --epsilon 1 --pair 3 4
import { serve } from "./serve.mjs";

const geometric = () => Math.floor(-Math.log(1 - Math.random()));

await serve((count) => count + geometric() - geometric());
