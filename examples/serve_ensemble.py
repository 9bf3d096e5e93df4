#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""An ensemble of models: a question goes to all, and the average of the first answers is the answer, so that
a slow model delays nothing. serve_ensemble.py model RANK | ask MODELS NEEDED QUESTIONS, each on a node."""

import sys

import numpy
import sarissa


def model(node, rank):
    """This one multiplies by its rank."""
    number = 0
    while True:
        question = node.get(f"question/{number}", timeout=60)
        if question.size == 0:
            return
        node.put(f"answer/{number}/{rank}", question * rank, ttl=60)
        number += 1


def ask(node, models, needed, questions):
    for number in range(questions):
        node.put(f"question/{number}", numpy.full(10_000, number + 1.0), ttl=60)
        answers = [f"answer/{number}/{rank}" for rank in range(models)]
        node.reduce(f"answer/{number}", answers, "avg", dtype="f64", num=needed, timeout=60)
        answer = node.get_array(f"answer/{number}", "f64", timeout=60)
        print("question", number, "answered by", len(node.reduce_sources(f"answer/{number}", timeout=60)),
              "models:", answer[0])
        node.expire(f"answer/{number}", 60)
    node.put(f"question/{questions}", numpy.empty(0), ttl=60)


with sarissa.open() as opened:
    if sys.argv[1] == "model":
        model(opened, int(sys.argv[2]))
    else:
        ask(opened, *map(int, sys.argv[2:5]))
