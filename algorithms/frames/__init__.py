"""Statistics of data frames of pandas, polars and Arrow, whose sensitivities follow from a schema.

References: McSherry (2009), who derives sensitivities from queries; docs/frames.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
