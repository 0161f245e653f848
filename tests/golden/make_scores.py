"""Scores of random predictions by scikit-learn, SciPy and seqeval -> scores.json, which
tests/train/test_scores.c compares with src/train/evaluate/scores.c. NaN is null.

    pip install scikit-learn scipy seqeval"""
import json
import math
import os
import random
import warnings

import scipy
import sklearn
from importlib.metadata import version
from scipy import stats
from seqeval import metrics as seqeval
from sklearn import metrics

HERE = os.path.dirname(os.path.abspath(__file__))
warnings.simplefilter("ignore")


def number(value):
    value = float(value)
    return None if math.isnan(value) else value


def numbers(**scores):
    return {name: number(value) for name, value in scores.items()}


def some_classes(r, classes, count):
    """Some classes are rare, some never occur."""
    weights = [r.choice([0, 0.1, 1, 1, 5]) for _ in range(classes)]
    if not sum(weights):
        weights[r.randrange(classes)] = 1
    return r.choices(range(classes), weights, k=count)


def predicted(r, labels, others):
    right = r.choice([0, 0.3, 0.7, 1])
    return [a if r.random() < right else b for a, b in zip(labels, others)]


def class_case(r):
    classes, count = r.choice([1, 2, 2, 3, 5, 9]), r.choice([1, 2, 7, 40, 90])
    labels = some_classes(r, classes, count)
    said = predicted(r, labels, some_classes(r, classes, count))
    want = numbers(accuracy=metrics.accuracy_score(labels, said),
                   f1_macro=metrics.f1_score(labels, said, average="macro"),
                   f1_micro=metrics.f1_score(labels, said, average="micro"),
                   matthews_correlation=metrics.matthews_corrcoef(labels, said))
    if classes == 2:
        want |= numbers(f1=metrics.f1_score(labels, said, labels=[1], average="macro"))
        if {0, 1} & set(labels + said) == {0, 1}:
            assert want["f1"] == metrics.f1_score(labels, said)
    return {"classes": classes, "labels": labels, "predictions": said, "scores": want}


def multilabel_case(r):
    columns, rows = r.choice([2, 3, 6]), r.choice([1, 3, 25])
    chance = [r.choice([0, 0.1, 0.5, 1]) for _ in range(columns)]
    labels = [[int(r.random() < c) for c in chance] for _ in range(rows)]
    said = [predicted(r, row, [int(r.random() < c) for c in chance]) for row in labels]
    want = numbers(accuracy=metrics.accuracy_score(labels, said),
                   f1_micro=metrics.f1_score(labels, said, average="micro"),
                   f1_macro=metrics.f1_score(labels, said, average="macro"))
    return {"columns": columns, "labels": sum(labels, []), "predictions": sum(said, []),
            "scores": want}


def regression_case(r):
    count, digits = r.choice([1, 2, 3, 9, 50]), r.choice([0, 1, 12])  # few digits: many are equal
    scale = r.choice([1e-6, 1, 1e5])
    x = [round(r.gauss(0, 1), digits) * scale for _ in range(count)]
    y = [round(0.5 * a / scale + r.gauss(0, 1), digits) * scale + 3 for a in x]
    constant = r.random()
    if constant < 0.1:
        x = [2.5] * count
    elif constant < 0.2:
        y = [-1.0] * count
    few = count < 2
    want = numbers(mse=metrics.mean_squared_error(x, y),
                   pearson=math.nan if few else stats.pearsonr(x, y).statistic,
                   spearman=math.nan if few else stats.spearmanr(x, y).statistic)
    return {"labels": x, "predictions": y, "scores": want}


def entity_case(r):
    """Tags as they should be, and as models say them."""
    names = r.choice([["O", "B-PER", "I-PER", "B-LOC", "I-LOC"],
                      ["I-LOC", "O", "B-LOC", "B-a-b", "I-a-b", "I-c"],
                      ["O", "B", "I", "B-X", "I-X"],
                      ["O", "B-X", "I-X", "E-X", "S-X", "E-Y", "S-Y", "I-Y"],
                      ["LABEL_0", "LABEL_1", "O", "I-X", ".", "É-X", "BX", "E", "S"],
                      ["O"]])
    sentences = [r.choice([1, 2, 5, 12]) for _ in range(r.choice([1, 2, 8]))]
    stay = r.choice([0, 0.5])

    def tags(count):
        out = [r.choice(names)]
        while len(out) < count:
            out.append(out[-1] if r.random() < stay else r.choice(names))
        return out

    labels = [tags(n) for n in sentences]
    said = [predicted(r, row, tags(len(row))) for row in labels]
    want = numbers(precision=seqeval.precision_score(labels, said),
                   recall=seqeval.recall_score(labels, said),
                   f1=seqeval.f1_score(labels, said),
                   accuracy=seqeval.accuracy_score(labels, said))
    flat = [[names.index(tag) for row in of for tag in row] for of in (labels, said)]
    return {"names": names, "lengths": sentences, "labels": flat[0], "predictions": flat[1],
            "scores": want}


def main():
    r = random.Random(22)
    made = {"versions": {"scikit-learn": sklearn.__version__, "scipy": scipy.__version__,
                         "seqeval": version("seqeval")}}
    for name, case, count in [("classes", class_case, 120), ("multilabel", multilabel_case, 40),
                              ("regression", regression_case, 80), ("entities", entity_case, 150)]:
        made[name] = [case(r) for _ in range(count)]
    with open(os.path.join(HERE, "scores.json"), "w") as f:
        lines = [f'"versions": {json.dumps(made.pop("versions"))}']
        for name, cases in made.items():
            rows = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
            lines.append(f'"{name}": [\n{rows}]')
        f.write("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
