"""The public names; `lazy_loader` reads where each one lies, and loads it when asked for."""

from .base.bounds_scaler import BoundsScaler as BoundsScaler
from .base.clipped_share import clipped_share as clipped_share
from .base.private_scaler import PrivateScaler as PrivateScaler
from .base.private_search import PrivateSearchCV as PrivateSearchCV
from .baselines.cai_wang_zhang import ThresholdedMean as ThresholdedMean
from .baselines.cai_wang_zhang import ThresholdedRegression as ThresholdedRegression
from .frank_wolfe.convex_set import GaussianFrankWolfe as GaussianFrankWolfe
from .frank_wolfe.polytope import FrankWolfe as FrankWolfe
from .frank_wolfe.private_lasso import PrivateLasso as PrivateLasso
from .frank_wolfe.private_logistic_lasso import PrivateLogisticLasso as PrivateLogisticLasso
from .label_privacy.label_classifier import LabelPrivateClassifier as LabelPrivateClassifier
from .label_privacy.label_randomizers import best_randomizer as best_randomizer
from .label_privacy.label_sgd import LabelSGD as LabelSGD
from .linear_models.private_generalized_linear_model import (
    PrivateGeneralizedLinearModel as PrivateGeneralizedLinearModel,
)
from .linear_models.private_linear_regression import (
    PrivateLinearRegression as PrivateLinearRegression,
)
from .linear_models.private_logistic_regression import (
    PrivateLogisticRegression as PrivateLogisticRegression,
)
from .sparse_regression.label_iht import LabelIHT as LabelIHT
from .sparse_regression.label_lasso import LabelLasso as LabelLasso
from .sparse_regression.local_iht import LocalIHT as LocalIHT
from .sparse_regression.sparse_erm import SparseERM as SparseERM
from .statistics.local_histogram import LocalHistogram as LocalHistogram
from .statistics.local_mean import LocalMean as LocalMean
from .statistics.partition_selection import best_partition_selection as best_partition_selection
from .statistics.private_mean import PrivateMean as PrivateMean
from .statistics.private_quantiles import PrivateQuantiles as PrivateQuantiles
from .statistics.private_selection import PrivateSelection as PrivateSelection
from .statistics.private_top_k import PrivateTopK as PrivateTopK
from .voting.sign_vote import SignVote as SignVote
