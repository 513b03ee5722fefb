"""The keywords that a type checker knows are the fields of the requests."""

from dataclasses import fields
from typing import get_type_hints

import pytest

from vitrail.base.errors import ConfigError
from vitrail.verbs.finetune import FinetuneRequest
from vitrail.verbs.keywords import FinetuneKeywords, PretrainKeywords, TrainKeywords, VtabKeywords
from vitrail.verbs.pretrain import PretrainRequest
from vitrail.verbs.request import make_request
from vitrail.verbs.train import TrainRequest
from vitrail.verbs.vtab import VtabRequest


@pytest.mark.parametrize(
    ("keywords", "request_kind", "positional"),
    [
        (TrainKeywords, TrainRequest, {"data"}),
        (PretrainKeywords, PretrainRequest, {"data", "others"}),
        (FinetuneKeywords, FinetuneRequest, {"data", "start"}),
        (VtabKeywords, VtabRequest, {"model", "root"}),
    ],
)
def test_keywords_are_the_fields_of_a_request(keywords: type, request_kind: type, positional: set[str]) -> None:
    hints = get_type_hints(request_kind)
    names = {field.name for field in fields(request_kind)} - positional
    assert get_type_hints(keywords) == {name: hints[name] for name in names}


def test_an_unknown_keyword_is_refused_with_the_names_near_it() -> None:
    with pytest.raises(ConfigError, match=r"there is no keyword 'minuts'.*Did you mean minutes"):
        make_request(TrainRequest, "photos", {"minuts": 3})
