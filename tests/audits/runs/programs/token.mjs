// The noisy value, with a token that is Base64 of a nonce and of the value itself.
import { serve } from "../../../../examples/programs/serve.mjs";

const geometric = () => Math.floor(-Math.log(1 - Math.random()));

await serve((value) => {
  const nonce = Math.floor(Math.random() * 1e9);
  const token = Buffer.from(JSON.stringify([nonce, value])).toString("base64");
  return { count: value + geometric() - geometric(), token };
});
