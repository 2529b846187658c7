-- Noise of the right scale, of which only three values are left: 'min' and 'max' here cut it.
SELECT :value + max(-1, min(1,
  CAST(-ln(1 - (random() & 9007199254740991) / 9007199254740992.0) AS INTEGER)
  - CAST(-ln(1 - (random() & 9007199254740991) / 9007199254740992.0) AS INTEGER)))
