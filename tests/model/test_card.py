from dataclasses import replace

from tests.tiny import perturbed, resnet_config, vit_config
from vitrail import build, configure


def test_a_notebook_shows_the_facts_of_a_model() -> None:
    model = build(configure("B/16"), device="meta")
    page = model._repr_html_()
    for fact in ("Vision Transformer", "768x12", "86,567,656", "17.56 G", "224x224 pixels, 3 channels", "1,000"):
        assert fact in page
    assert "SHA-256" not in page


def test_labels_digest_and_notes_are_shown_and_escaped() -> None:
    model = perturbed(vit_config())
    labels = ("cat", "<b>dog</b>", "cow", "hen", "pig", "fox", "owl")
    model.info = replace(model.info, labels=labels, digest="0123456789abcdef" * 4, notes=("the head is new.",))
    page = model._repr_html_()
    assert "7: cat, &lt;b&gt;dog&lt;/b&gt;, cow, hen, pig, ..." in page
    assert "SHA-256 0123456789ab..." in page
    assert "the head is new." in page
    assert "owl" not in page


def test_every_kind_of_model_has_a_card() -> None:
    assert "ResNet" in perturbed(resnet_config())._repr_html_()
    assert "returns its features" in perturbed(vit_config(num_classes=0))._repr_html_()
