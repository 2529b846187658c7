"""Labels as numbers: one code for each class, and the first class for whatever is none of them."""

import numpy as np
import pytest

from algorithms.base.binary_labels import encode_classes, encode_two_classes

CLASSES = ("no", "some", "yes")
LABELS = {
    "known": ("yes", "no", "some", "yes"),
    "unknown text": ("yes", "maybe", "", "zz"),
    "missing": ("yes", None, float("nan"), "some"),
    "numbers": ("yes", 1, 2.5, True),
    "not hashable": ("yes", ["yes"], {"some": 1}, "some"),
    "hashable and no label": ("yes", ("yes",), frozenset(), "some"),
}


def cells(labels):
    """The labels in an array of objects, of which each is one cell."""
    column = np.empty(len(labels), dtype=object)
    column[:] = labels
    return column


@pytest.mark.parametrize("name", LABELS)
def test_a_label_of_no_class_has_the_code_of_the_first_one_whatever_it_is(name):
    labels = LABELS[name]
    codes = [float(CLASSES.index(label)) if label in CLASSES else 0.0 for label in labels]
    for classes in (CLASSES, CLASSES[::-1], np.array(CLASSES, dtype=object)):
        public, encoded = encode_classes(cells(labels), classes)
        assert public.tolist() == list(CLASSES)
        assert encoded.tolist() == codes
    if all(isinstance(label, str) for label in labels):
        assert encode_classes(np.array(labels), CLASSES)[1].tolist() == codes


@pytest.mark.parametrize("kind", [object, float, int])
def test_two_classes_are_minus_one_and_one(kind):
    public, signs = encode_two_classes(np.array([3, 7, 5, 9, 1], dtype=kind), [7, 3])
    assert public.tolist() == [3, 7]
    assert signs.tolist() == [-1.0, 1.0, -1.0, -1.0, -1.0]
