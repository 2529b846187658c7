"""Outputs that are read together have the features that each has by itself."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audits.classifiers.output_features import _read_together, _walked
from audits.classifiers.uniform_outputs import uniform_block

NAMES = st.sampled_from(["a", "b", "c 1", ""])
LEAVES = st.sampled_from(["float", "int", "bool", "None", "text", "array", "floats"])
SHAPES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(NAMES, inner, max_size=3),
    ),
    max_leaves=6,
)  # fmt: skip


def made(shape, rng):
    """An output of a shape, with its own numbers."""
    if isinstance(shape, dict):
        return {name: made(one, rng) for name, one in shape.items()}
    if isinstance(shape, (list, tuple)):
        return type(shape)(made(one, rng) for one in shape)
    return {
        "float": rng.choice([float(rng.normal()), float("nan"), -0.0]).item(),
        "int": int(rng.integers(-(2**50), 2**50)), "bool": bool(rng.integers(2)), "None": None,
        "text": "at 3 of 4", "array": rng.normal(size=(2, 2)),
        "floats": rng.normal(size=3).tolist(),
    }[shape]  # fmt: skip


def assert_read_alike(outputs):
    together = _read_together(outputs)
    apart = _walked(outputs)
    assert together is not None
    for one, other in zip(together, apart, strict=True):
        assert (one.structure, one.category) == (other.structure, other.category)
        np.testing.assert_array_equal(one.numbers, other.numbers)
        assert one.unseen == other.unseen == ()


@given(SHAPES, st.integers(0, 2**32))
def test_outputs_of_one_structure(shape, seed):
    rng = np.random.default_rng(seed)
    assert_read_alike([made(shape, rng) for _ in range(5)])


@given(st.lists(SHAPES, min_size=2, max_size=4), st.integers(0, 2**32))
def test_outputs_of_several_structures(shapes, seed):
    rng = np.random.default_rng(seed)
    outputs = [made(shape, rng) for shape in shapes]
    if uniform_block(outputs) is not None:
        assert_read_alike(outputs)


FRAMES = {
    "numbers": lambda x: pd.DataFrame({"a": [x, 1.0], "b": [1, 2], "c": [True, False]}),
    "labels": lambda x: pd.DataFrame({"a": [x, 1.0], "b": ["u", "v"]}),
    "two columns of one name": lambda x: pd.DataFrame([[x, 1.0]], columns=["a", "a"]),
    "numbered columns": lambda x: pd.DataFrame([[x, 1.0]]),
    "objects": lambda x: pd.DataFrame({"a": [[x, 2.0], None]}),
    "an index of numbers": lambda x: pd.DataFrame({"a": [1.0, 2.0]}, index=[x, 1.0]),
    "a named index of texts": lambda x: pd.DataFrame({"a": [x]}, index=pd.Index(["u"], name="n")),
    "a series": lambda x: pd.Series([x, 1.0], name="s"),
    "a series of labels": lambda x: pd.Series(["u", "v"], index=[x, 2.0]),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_of_one_structure(name):
    assert_read_alike([FRAMES[name](float(x)) for x in range(5)])


DIFFERENT = {
    "length": ([1.0], [1.0, 2.0]),
    "types": ([1.0, 2.0], [1.0, 2]),
    "keys": ({"a": 1.0}, {"b": 1.0}),
    "order of keys": ({"a": 1.0, "b": 1.0}, {"b": 1.0, "a": 1.0}),
    "kind of keys": ({1: 1.0}, {True: 1.0}),
    "texts": (["a", 1.0], ["b", 1.0]),
    "long integers": ([2**53 + 1], [2**53 + 2]),
    "dtype": (np.zeros(2), np.zeros(2, np.float32)),
    "shape": (np.zeros((1, 2)), np.zeros((2, 1))),
    "columns": (pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]})),
    "dtypes": (pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": [1]})),
    "labels": (pd.DataFrame({"a": ["u"]}), pd.DataFrame({"a": ["v"]})),
    "index": (pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": [1.0]}, index=[1])),
    "name of the index": (
        pd.DataFrame({"a": [1.0]}, index=pd.Index(["u"], name="n")),
        pd.DataFrame({"a": [1.0]}, index=pd.Index(["u"], name="m")),
    ),
    "attrs": (pd.Series([1.0]), pd.Series([1.0])),
}
DIFFERENT["attrs"][1].attrs["seen"] = 1


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_difference_is_a_difference_on_both_roads(name):
    first, second = DIFFERENT[name]
    assert uniform_block([first, second, first, second]) is None
    one, other = _walked([first, second])
    assert one.structure != other.structure or one.category != other.category
