import pytest

from tests.runtime.test_native_encoder import COMPILED
from vitrail import ConfigError
from vitrail.runtime import native_library
from vitrail.runtime.choice import EngineChoice, check_installed, install_command, missing_packages
from vitrail.runtime.native_library import compile_program, find_compiler, load_library


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, in a process that has loaded nothing."""
    monkeypatch.setenv("VITRAIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(native_library, "_loaded", {})
    return tmp_path / "cache" / "native"


@pytest.fixture(scope="module")
def program() -> bytes:
    return compile_program(find_compiler() or [])


@COMPILED
def test_the_library_is_compiled_once_and_stored(cache, program, monkeypatch) -> None:
    compiled, notes = [], []
    monkeypatch.setattr(native_library, "compile_program", lambda words: compiled.append(words) or program)
    first = load_library(notes.append)
    assert load_library(notes.append) is first
    native_library._loaded.clear()
    load_library(notes.append)
    assert len(compiled) == 1
    assert notes == ["the engine native is being compiled for this processor, once; that takes seconds."]
    (stored,) = cache.iterdir()
    assert stored.suffix == ".so"


@COMPILED
def test_a_damaged_library_is_not_loaded_but_made_again(cache, program, monkeypatch) -> None:
    monkeypatch.setattr(native_library, "compile_program", lambda _: program)
    load_library()
    (stored,) = cache.iterdir()
    for damage in (program[:-9], program.replace(b"\x00\x00", b"\x00\x01", 1), b""):
        stored.unlink()  # it is loaded in this process, which would not survive a change in place
        stored.write_bytes(damage)
        native_library._loaded.clear()
        load_library()
        assert stored.read_bytes() == program


def test_another_program_or_compiler_has_another_name(monkeypatch, tmp_path) -> None:
    key = native_library.program_key(["g++"])
    assert native_library.program_key(["clang++"]) != key
    (tmp_path / native_library.PROGRAM).write_text("int main() {}")
    monkeypatch.setattr(native_library, "SOURCES", tmp_path)
    assert native_library.program_key(["g++"]) != key


@COMPILED
def test_without_a_place_to_store_it_the_library_is_used_all_the_same(cache, program, monkeypatch) -> None:
    monkeypatch.setattr(native_library, "compile_program", lambda _: program)
    cache.parent.mkdir()
    cache.write_text("a file where the folder should be")
    notes = []
    assert load_library(notes.append).vitrail_int8() in (0, 1)
    assert any("the engine native is used, but not stored" in note for note in notes)


@pytest.mark.usefixtures("cache")
def test_a_machine_without_a_compiler_is_told_how_to_have_one(monkeypatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(ConfigError, match=r"needs a C\+\+ compiler; run `.*`, or name one in CXX, or choose another"):
        load_library()
    assert missing_packages("native") == ("a C++ compiler",)
    with pytest.raises(ConfigError, match=r"`engine=native` needs a C\+\+ compiler, which is not installed; run"):
        check_installed("native")
    assert install_command("native") == native_library.COMPILER_COMMAND
    assert EngineChoice(engine="native").given


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(("compiler", "reason"), [("false", "it ended with code 1"), ("true", "it ended with code 0")])
def test_a_compiler_that_fails_is_named(monkeypatch, compiler, reason) -> None:
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(ConfigError, match=f"{compiler} did not compile the engine native: {reason}; choose another"):
        load_library()


@COMPILED
@pytest.mark.usefixtures("cache")
def test_a_program_that_does_not_compile_shows_the_first_error(monkeypatch, tmp_path) -> None:
    (tmp_path / native_library.PROGRAM).write_text("int main() { return nonsense; }")
    monkeypatch.setattr(native_library, "SOURCES", tmp_path)
    with pytest.raises(ConfigError, match=r"error: .*nonsense.*; choose another compiler in CXX"):
        load_library()


@COMPILED
@pytest.mark.usefixtures("cache")
def test_a_library_that_cannot_be_loaded_is_one_sentence(monkeypatch) -> None:
    monkeypatch.setattr(native_library, "compile_program", lambda _: b"not a library")
    with pytest.raises(ConfigError, match=r"\.so cannot be loaded .*; delete it, or choose another engine"):
        load_library()
