"""DINO's loss: the student's answer for each view is drawn to the teacher's for every other view that it sees."""

import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.selfsup.dino_head import Scores

Views = Float[Tensor, "view batch prototype"]
Seen = Float[Tensor, "seen batch prototype"]
"""Of the views that the teacher sees."""


def teacher_answers(scores: Scores, centre: Float[Tensor, " prototype"], temperature: float) -> Scores:
    """Centre and sharpen: softmax((scores - centre) / temperature)."""
    return ((scores.float() - centre) / temperature).softmax(dim=1)


def dino_loss(student: Views, teacher: Seen, temperature: float) -> Float[Tensor, ""]:
    """Return the mean cross-entropy over all pairs of a teacher's view and another view of the student.

    The teacher sees the first T of V views. With z = student / temperature and p the teacher's answers, the pairs of
    view v sum to c_v logsumexp(z_v) - <P_v, z_v>, where P_v is the sum of p over the teacher's other views and c_v
    their number: no log-softmax is stored.
    """
    seen, views = len(teacher), len(student)
    everything = teacher.sum(0)
    total = student.new_zeros(student.shape[1], dtype=torch.float32)
    for number in range(views):
        logits = student[number].float() / temperature
        others = everything - teacher[number] if number < seen else everything
        count = seen - (number < seen)
        total = total + count * logits.logsumexp(dim=1) - (others * logits).sum(dim=1)
    return total.mean() / (seen * (views - 1))


def entropy(answers: Float[Tensor, "*batch prototype"]) -> Float[Tensor, "*batch"]:
    """Return -sum p log p as a share of its maximum, log K."""
    terms = torch.special.entr(answers).sum(dim=-1)
    return terms / torch.log(torch.tensor(float(answers.shape[-1]), device=answers.device))


def temperature_at(start: float, end: float, warmup: float, done: float) -> float:
    """Return the teacher's temperature: from `start` to `end` linearly over a share of the steps, then `end`."""
    return end if done >= warmup else start + (end - start) * done / warmup
