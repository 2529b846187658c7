-- Two-sided geometric noise, as epsilon 1 needs: random() has 64 bits, and its mask 53 of them.
SELECT :value
  + CAST(-ln(1 - (random() & 9007199254740991) / 9007199254740992.0) AS INTEGER)
  - CAST(-ln(1 - (random() & 9007199254740991) / 9007199254740992.0) AS INTEGER)
