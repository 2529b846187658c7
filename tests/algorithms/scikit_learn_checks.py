"""What private estimators refuse scikit-learn's checks, and why.

Fits without privacy pass every check: they look at labels and at missing values as scikit-learn
does.
"""

LEAK = "a refusal that one record decides tells that the record is there"
CLASSES = "its classes are declared, and the labels of this check are others"
OF_ANY_FIT = {"check_supervised_y_no_nan": LEAK}
OF_PRIVATE_FEATURES = {"check_dtype_object": LEAK}
OF_LABELS = {
    "check_classifiers_classes": CLASSES,
    "check_classifiers_regression_target": LEAK,
}
NOISE = {"check_classifiers_one_label": "noise hides what ten records have in common"}
OF_PAIRS = {"check_classifier_not_supporting_multiclass": LEAK} | NOISE
OF_MANY_CLASSES = {
    "check_classifiers_train": CLASSES,
    "check_estimator_sparse_array": CLASSES,
    "check_estimator_sparse_matrix": CLASSES,
}


def expected_failures(estimator):
    """The checks that an estimator may fail, each with its reason."""
    if getattr(estimator, "non_private", False):
        return {}
    found, tags = dict(OF_ANY_FIT), estimator.__sklearn_tags__()
    if tags.input_tags.allow_nan:
        found |= OF_PRIVATE_FEATURES
    if tags.estimator_type == "classifier":
        found |= OF_LABELS | (OF_MANY_CLASSES if tags.classifier_tags.multi_class else OF_PAIRS)
        found |= {} if tags.input_tags.allow_nan else NOISE  # reports of ten labels
    return found
