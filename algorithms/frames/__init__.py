"""Statistics of data frames of pandas, polars and Arrow, whose sensitivities follow from a schema.

References: McSherry (2009), who derives sensitivities from queries; docs/frames.md.
"""

import lazy_loader

from dp_attest.public_names import with_hints

_lazy, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = with_hints(__name__, _lazy, __all__)
