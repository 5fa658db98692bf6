"""Verification: what is found out about a tampered recording, with and without the weights."""

import copy
import json
import subprocess
from pathlib import Path

import pytest

from course_utils.errors import CourseError
from course_utils.messages import Alternative
from course_utils.models import checks, verify
from course_utils.models.catalogue import have_weights, spec
from course_utils.models.changed import keys_changed_since
from course_utils.models.checks import Verdict, form_problems
from course_utils.models.margins import (
    decisive_tokens,
    load_margins,
    read_margins,
    reply_hash,
    write_margins,
)
from course_utils.models.recordings import make_record, read_file, request_of
from course_utils.models.seam import Generation, Request
from course_utils.models.tokenizer import tokenizer

MODEL = "qwen2.5-coder-0.5b"
# Replies that the 0.5B model really gave: greedy, constrained, sampled, stopped, cut.
REPLIES = Path(__file__).parent / "replies" / "qwen2.5-coder-0.5b.jsonl"


@pytest.fixture(scope="module")
def tok():
    return tokenizer("qwen2.5-coder")


@pytest.fixture
def replies():
    return [{k: v for k, v in record.items() if k != "file"} for record in read_file(REPLIES)]


def pick(replies, **wanted):
    """The first reply whose fields or settings are as wanted."""
    for record in replies:
        if all(record.get(k, record["settings"].get(k)) == v for k, v in wanted.items()):
            return copy.deepcopy(record)
    raise AssertionError(f"no stored reply with {wanted}")


def constrained(replies):
    return copy.deepcopy(
        next(r for r in replies if r["settings"]["grammar"] and not r["settings"]["temperature"])
    )


def sampled(replies):
    return copy.deepcopy(next(r for r in replies if r["settings"]["temperature"] == 1.0))


def test_stored_replies_cover_every_kind_and_are_sound(replies):
    assert {r["finish_reason"] for r in replies} == {"stop", "length", "stop_string"}
    assert constrained(replies) and sampled(replies)
    assert [form_problems(record) for record in replies] == [[] for _ in replies]


def test_one_changed_word_is_seen(replies):
    record = pick(replies, text="My name is Bob.")
    record["text"] = "My name is Rob."
    assert form_problems(record) == ["the text is not what the token ids spell"]


def test_changed_prompt_or_settings_break_the_key(replies):
    record = pick(replies, finish_reason="stop")
    for name, value in (("seed", 5), ("temperature", 0.5), ("stop", ["x"]), ("grammar", "{}")):
        changed = copy.deepcopy(record)
        changed["settings"][name] = value
        assert any("key" in problem for problem in form_problems(changed)), name
    record["prompt"] = record["prompt"].replace("helpful", "helpless")
    assert any("key" in problem for problem in form_problems(record))


def test_key_of_another_model_is_wrong(replies):
    record = pick(replies, finish_reason="stop")
    record["model"] = "qwen2.5-coder-1.5b"
    assert any("key" in problem for problem in form_problems(record))
    record["model"] = "gpt-2"
    assert form_problems(record) == ["no model of the catalogue is called 'gpt-2'"]


@pytest.mark.parametrize("wrong", [-1, 152_000, 10**12, "9707", None])
def test_number_that_is_no_token_is_seen(replies, wrong):
    record = pick(replies, finish_reason="stop")
    record["ids"][0] = wrong
    assert form_problems(record) == [f"{wrong!r} is not a token id of this model"]


@pytest.mark.parametrize(
    ("kind", "claimed", "message"),
    [
        ("stop", "length", "cut at"),
        ("length", "stop", "end token"),
        ("stop", "stop_string", "contains none"),
        ("stop_string", "stop", "runs past"),
        ("stop", "eos", "no reply ends by"),
    ],
)
def test_false_finish_reason_is_seen(replies, kind, claimed, message):
    record = pick(replies, finish_reason=kind)
    record["finish_reason"] = claimed
    assert any(message in problem for problem in form_problems(record))


def test_token_cut_off_or_added_is_seen(replies, tok):
    cut = pick(replies, finish_reason="length")
    cut["ids"].pop()
    cut["text"], cut["output_tokens"] = tok.decode(cut["ids"]), len(cut["ids"])
    assert any("cut at" in problem for problem in form_problems(cut))
    longer = pick(replies, finish_reason="stop_string")
    longer["ids"] += tok.encode(" six")
    longer["output_tokens"] += 1
    assert any("goes on after" in problem for problem in form_problems(longer))


def test_escaped_end_marker_is_not_the_control_token(tok):
    model = spec(MODEL)
    plain = [i for piece in ("<", "|", "im", "_end", "|", ">") for i in tok.encode(piece)]
    request = Request(tuple(tok.encode("Repeat: ") + plain), max_new_tokens=20)
    text = tok.decode(plain)
    honest = make_record(request, Generation(tuple(plain), text, "stop"), model, tok, "test")
    assert form_problems(honest) == []
    # In the reply: the same text, but as the one control token.
    forged = {**honest, "ids": [tok.end_id], "output_tokens": 1}
    assert tok.decode(forged["ids"]) == honest["text"]
    assert form_problems(forged) == ["token 0 is the control token <|im_end|>, which ends a reply"]
    # In the prompt: without the stored ids the text is read as the control token.
    lost = {name: value for name, value in honest.items() if name != "prompt_ids"}
    assert any("key" in problem for problem in form_problems(lost))


def test_candidates_must_be_given_for_every_token(replies):
    record = next(copy.deepcopy(r) for r in replies if r.get("alternatives"))
    record["alternatives"].pop()
    assert any("candidates" in problem for problem in form_problems(record))


def test_the_tokens_of_a_stop_string_need_no_candidates(tok):
    text = "x = 1\n</code>"
    ids = tok.encode(text)
    request = Request((1, 2, 3), max_new_tokens=20, stop=("</code>",), top_k=1)
    inside = len(tok.encode("x = 1\n"))
    assert tok.decode(ids[:inside]) == "x = 1\n"  # the stop begins with a token of its own

    def problems(rows):
        alternatives = tuple((Alternative(i, tok.decode([i]), -0.1),) for i in ids[:rows])
        made = Generation(tuple(ids), "x = 1\n", "stop_string", alternatives)
        record = make_record(request, made, spec(MODEL), tok, "x")
        return [p for p in form_problems(record) if "candidates" in p]

    assert problems(len(ids)) == problems(inside) == []
    assert problems(inside - 1) == [f"candidates are given for {inside - 1} of {len(ids)} tokens"]


def test_hash_follows_the_content_and_not_the_file(replies):
    record = pick(replies, finish_reason="stop")
    assert reply_hash({**record, "file": "other.jsonl"}) == reply_hash(record)
    assert reply_hash({**record, "engine": "another"}) != reply_hash(record)
    assert reply_hash({**record, "ids": record["ids"][:-1]}) != reply_hash(record)


def test_decisive_tokens_are_the_closest(replies, tok, tmp_path):
    record = pick(replies, text="My name is Bob.")
    pairs = [[3.0, 40], [None, None], [0.25, 9707], [-0.125, 0], [5.0, 1], [7.5, 2]]
    entry = {"key": record["key"], "reply": reply_hash(record), "margins": pairs}
    write_margins(tmp_path / "00_x.jsonl", {record["key"]: entry})
    assert load_margins(record["key"], tmp_path)[1] == (None, None)
    closest = decisive_tokens(record, 2, tmp_path)
    assert [(d.position, d.margin, d.runner_up) for d in closest] == [
        (3, -0.125, "!"),
        (2, 0.25, "Hello"),
    ]
    assert closest[1].token == tok.decode([record["ids"][2]])
    with pytest.raises(CourseError, match="verify"):
        load_margins("0" * 64, tmp_path)


def test_margins_of_an_earlier_reply_are_not_those_of_this_one(replies, tok, tmp_path):
    record = pick(replies, text="My name is Bob.")
    pairs = [[3.0, 40]] * (len(record["ids"]) + 1)
    entry = {"key": record["key"], "reply": reply_hash(record), "margins": pairs}
    write_margins(tmp_path / "00_x.jsonl", {record["key"]: entry})
    for ids in (record["ids"][:2], [*record["ids"][:-1], tok.end_id]):
        with pytest.raises(CourseError, match="changed since its margins were stored"):
            decisive_tokens({**record, "ids": ids}, 3, tmp_path)


def test_damaged_margins_say_what_to_do(tmp_path):
    (tmp_path / "00_x.jsonl").write_text('{"key": "a"', encoding="utf-8")
    with pytest.raises(CourseError, match="00_x.jsonl is damaged"):
        read_margins(tmp_path / "00_x.jsonl")


# -- which replies are judged: a stand-in judge that needs no weights --


@pytest.fixture
def folder(replies, tmp_path, monkeypatch):
    """A folder of recordings, and a judge who finds every token clear and notes what it read."""
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name, records in (("00_a", replies[:4]), ("01_b", replies[4:])):
        lines = [json.dumps({k: v for k, v in r.items() if k != "file"}) for r in records]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    read = []

    class Clear:
        tokens_read = 0

        def __init__(self, model):
            self.spec = model

    def judge(_, record):
        read.append(record["key"])
        return Verdict([(4.0, 1)] * len(record["ids"]), [], 4.0)

    monkeypatch.setattr(verify, "Judge", Clear)
    monkeypatch.setattr(verify, "judge_reply", judge)
    return folder, read


def test_without_a_choice_all_are_judged_and_margins_kept(folder, replies, capsys):
    recordings, read = folder
    assert verify.verify_main([], recordings) == 0
    assert sorted(read) == sorted(r["key"] for r in replies)
    output = capsys.readouterr().out
    assert "00_a" in output and "01_b" in output and "4.000" in output
    stored = read_margins(recordings / "margins" / "00_a.jsonl")
    assert set(stored) == {r["key"] for r in replies[:4]}


def test_only_what_changed_and_a_seeded_sample(folder, replies):
    recordings, read = folder
    verify.verify_main([], recordings)
    read.clear()
    verify.verify_main(["--sample", "0"], recordings)
    assert read == []
    path = recordings / "margins" / "01_b.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[1:]) + "\n", encoding="utf-8")
    verify.verify_main(["--sample", "0"], recordings)
    assert read == [json.loads(lines[0])["key"]]
    draws = []
    for seed in ("1", "1", "2"):
        read.clear()
        verify.verify_main(["--sample", "3", "--seed", seed], recordings)
        draws.append(sorted(read))
    assert draws[0] == draws[1] != draws[2] and len(draws[0]) == 3


def test_notebooks_can_be_chosen(folder, replies):
    recordings, read = folder
    verify.verify_main(["00"], recordings)
    assert sorted(read) == sorted(r["key"] for r in replies[:4])
    with pytest.raises(CourseError, match="'07'"):
        verify.verify_main(["07"], recordings)


@pytest.mark.parametrize(
    ("option", "value"),
    [("--sample", "-3"), ("--sample", "2.5"), ("--sample", "few")]
    + [("--minutes", value) for value in ("0", "-1", "nan", "six")],
)
def test_a_wrong_number_is_refused_before_anything_is_read(folder, capsys, option, value):
    recordings, read = folder
    with pytest.raises(SystemExit) as refused:
        verify.verify_main([f"{option}={value}"], recordings)
    assert refused.value.code == 2 and read == []
    said = capsys.readouterr().err
    assert option in said and repr(value) in said and "should be" in said


def test_the_help_says_what_cannot_be_seen(capsys):
    with pytest.raises(SystemExit):
        verify.verify_main(["--help"])
    assert "cannot see everything" in capsys.readouterr().out


def test_time_that_is_up_is_said(folder, replies, capsys):
    recordings, read = folder
    assert verify.verify_main(["--minutes", "0.0000001"], recordings) == 0
    assert read == []
    assert f"Not reached in 0 minutes: {len(replies)} replies." in capsys.readouterr().out


def test_one_changed_word_fails_the_command(folder, replies, capsys):
    recordings, read = folder
    path = recordings / "00_a.jsonl"
    key = next(r["key"] for r in replies[:4] if r["text"] == "My name is Bob.")
    path.write_text(path.read_text("utf-8").replace("is Bob.", "is Rob."), encoding="utf-8")
    assert verify.verify_main([], recordings) == 1
    output = capsys.readouterr().out
    assert f"FAILED 00_a, reply {key[:12]}: the text is not what the token ids spell" in output
    assert key not in read and key not in read_margins(recordings / "margins" / "00_a.jsonl")


def test_missing_weights_are_said_after_what_was_found_without_them(folder, capsys, monkeypatch):
    recordings, _ = folder

    def absent(model):
        raise CourseError(f"fetch {model.name}")

    monkeypatch.setattr(verify, "Judge", absent)
    path = recordings / "00_a.jsonl"
    path.write_text(path.read_text("utf-8").replace("is Bob.", "is Rob."), encoding="utf-8")
    assert verify.verify_main([], recordings) == 1
    output = capsys.readouterr().out
    assert "not what the token ids spell" in output and f"fetch {MODEL}" in output


def test_unchanged_margins_stay_unless_rewritten(folder, monkeypatch):
    recordings, _ = folder
    verify.verify_main([], recordings)
    path = recordings / "margins" / "00_a.jsonl"
    before = path.read_text(encoding="utf-8")

    def drifting(by):
        return lambda _, record: Verdict([(4.0 + by, 1)] * len(record["ids"]), [], 4.0 + by)

    monkeypatch.setattr(verify, "judge_reply", drifting(0.2))
    assert verify.verify_main([], recordings) == 0
    assert path.read_text(encoding="utf-8") == before
    monkeypatch.setattr(verify, "judge_reply", drifting(6.0))
    assert verify.verify_main([], recordings) == 1  # these margins were never the judge's
    assert verify.verify_main(["--all"], recordings) == 0
    assert "[10.0,1]" in path.read_text(encoding="utf-8")


def test_lines_that_git_finds_changed_are_judged(folder, capsys):
    recordings, read = folder
    verify.verify_main([], recordings)

    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *arguments], cwd=recordings, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "base")
    assert keys_changed_since("HEAD", recordings) == set()
    path = recordings / "margins" / "00_a.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[0] = lines[0].replace("[4.0,1]", "[4.5,1]", 1)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    read.clear()
    verify.verify_main(["--changed-since", "HEAD"], recordings)
    assert read == [json.loads(lines[0])["key"]]
    capsys.readouterr()
    assert keys_changed_since("no-such-revision", recordings) == set()
    assert "no-such-revision" in capsys.readouterr().out


# -- with the weights --


@pytest.fixture(scope="module")
def judge():
    if not have_weights(spec(MODEL)):
        pytest.skip(f"needs the weights: python -m course_utils fetch {MODEL}")
    from course_utils.models.judge import Judge

    return Judge(spec(MODEL))


@pytest.mark.judge
def test_judge_confirms_every_honest_reply(judge, replies):
    for record in replies:
        verdict = checks.judge_reply(judge, record)
        assert verdict.problems == [], record["text"]
        assert len(verdict.margins) == len(record["ids"]) + (record["finish_reason"] == "stop")


@pytest.mark.judge
def test_command_names_reply_notebook_token_and_margin(judge, replies, tok, tmp_path, capsys):
    honest, forged = pick(replies, text="My name is Bob."), pick(replies, finish_reason="length")
    forged["ids"][2:3] = tok.encode(" banana")
    forged["text"] = tok.decode(forged["ids"])
    lines = [json.dumps(record) for record in (honest, forged)]
    (tmp_path / "00_a.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert verify.verify_main(["--minutes", "6"], tmp_path) == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if "FAILED" in line]
    assert failed and failed[0].startswith(f"FAILED 00_a, reply {forged['key'][:12]}: token 2")
    assert "' banana': margin -" in failed[0]
    assert set(read_margins(tmp_path / "margins" / "00_a.jsonl")) == {honest["key"]}


@pytest.mark.judge
def test_judge_sees_one_replaced_token(judge, replies, tok):
    record = pick(replies, text="My name is Bob.")
    record["ids"][3:4] = tok.encode(" Rob")
    record["text"] = tok.decode(record["ids"])
    assert form_problems(record) == []
    problems = checks.judge_reply(judge, record).problems
    assert problems and problems[0].startswith("token 3 ' Rob': margin -")
    assert "' Bob'" in problems[0]


@pytest.mark.judge
def test_judge_sees_a_reply_cut_short(judge, replies, tok):
    record = pick(replies, text="My name is Bob.")
    record["ids"] = record["ids"][:3]
    record["alternatives"] = []
    assert any("<|im_end|>" in p for p in checks.judge_reply(judge, record).problems)


@pytest.mark.judge
def test_constrained_reply_needs_its_mask(judge, replies):
    record = constrained(replies)
    masked = checks.judge_reply(judge, record)
    record["settings"]["grammar"] = None
    free = checks.judge_reply(judge, record)
    assert masked.problems == [] and masked.worst >= -checks.TOLERANCE
    assert free.problems and free.worst < -1


@pytest.mark.judge
def test_judge_sees_what_the_grammar_forbids(judge, replies, tok):
    record = constrained(replies)
    record["ids"][0:1] = tok.encode("Sure")
    problems = checks.judge_reply(judge, record).problems
    assert problems == ["token 0 'Sure': the grammar does not allow it there"]


@pytest.mark.judge
def test_judge_sees_an_absurd_token_in_a_sample(judge, replies, tok):
    record = sampled(replies)
    request = request_of(record, tok)
    scores = list(judge.scores(request.prompt_ids, record["ids"]))
    record["ids"][5] = int(scores[5].argmin())
    assert any("too low to be drawn" in p for p in checks.judge_reply(judge, record).problems)


@pytest.mark.judge
def test_judge_sees_a_sample_that_is_another_text(judge, replies, tok):
    record = sampled(replies)
    record["ids"] = record["ids"][::-1]
    assert any("as a whole" in p for p in checks.judge_reply(judge, record).problems)


@pytest.mark.judge
def test_judge_sees_forged_candidates(judge, replies):
    record = next(copy.deepcopy(r) for r in replies if r.get("alternatives"))
    record["alternatives"][0][1][1] += 3
    assert any("candidate" in p for p in checks.judge_reply(judge, record).problems)


@pytest.mark.judge
def test_shared_beginnings_do_not_change_the_scores(judge, replies, tok):
    import torch

    jobs = sorted((request_of(r, tok).prompt_ids, r["ids"]) for r in replies[:4])
    in_turn = [torch.stack(list(judge.scores(*job))) for job in jobs]
    before = judge.tokens_read
    assert judge.unread(*jobs[-1]) <= len(jobs[-1][1]) + 1  # all of the prompt is held
    again = torch.stack(list(judge.scores(*jobs[-1])))
    assert judge.tokens_read - before == len(jobs[-1][1]) + 1
    assert (again - in_turn[-1]).abs().max() < checks.TOLERANCE
    for job, scores in zip(jobs, in_turn, strict=True):
        assert scores.shape[0] == len(job[1]) + 1
