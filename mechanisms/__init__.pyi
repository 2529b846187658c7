"""The types of the public names: made by `make table`."""

from .above_threshold import AboveThreshold as AboveThreshold
from .base.mechanism import EXACT as EXACT
from .base.mechanism import IDEALISED as IDEALISED
from .base.mechanism import Arithmetic as Arithmetic
from .base.mechanism import Mechanism as Mechanism
from .base.mechanism import registry as registry
from .base.parameters import declare as declare
from .base.parameters import param as param
from .binary_label import BinaryLabel as BinaryLabel
from .clamped import Clamped as Clamped
from .cube import CubeLinf as CubeLinf
from .discrete_gaussian import DiscreteGaussian as DiscreteGaussian
from .discrete_laplace import DiscreteLaplace as DiscreteLaplace
from .exponential import Exponential as Exponential
from .gaussian import Gaussian as Gaussian
from .gaussian_partition_selection import (
    GaussianPartitionSelection as GaussianPartitionSelection,
)
from .hadamard_response import HadamardResponse as HadamardResponse
from .hemisphere import HemisphereL2 as HemisphereL2
from .laplace import Laplace as Laplace
from .lazy_exponential import LazyExponential as LazyExponential
from .local_hashing import LocalHashing as LocalHashing
from .mapped import Mapped as Mapped
from .matrix_mechanism import MatrixMechanism as MatrixMechanism
from .noisy_max import NoisyMax as NoisyMax
from .partition_selection import PartitionSelection as PartitionSelection
from .permute_and_flip import PermuteAndFlip as PermuteAndFlip
from .piecewise_uniform import PiecewiseUniform as PiecewiseUniform
from .priv_unit import PrivUnit as PrivUnit
from .pure_from_approximate import PureFromApproximate as PureFromApproximate
from .randomized_response import RandomizedResponse as RandomizedResponse
from .run_length_exponential import RunLengthExponential as RunLengthExponential
from .skellam import Skellam as Skellam
from .sparse_vector import SparseVector as SparseVector
from .staircase import Staircase as Staircase
from .subset_selection import SubsetSelection as SubsetSelection
from .sum_of_clients import ClientVectors as ClientVectors
from .sum_of_clients import SumOfClients as SumOfClients
from .sum_of_clients import calibrate_sum as calibrate_sum
from .truncated_laplace import TruncatedLaplace as TruncatedLaplace
from .unary_encoding import UnaryEncoding as UnaryEncoding
