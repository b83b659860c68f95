"""A program beside us: good answers, and every way it can go wrong."""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

from adverse.errors import CrashError, OutOfMemoryError, SutError
from adverse.suts import child_process, wire
from adverse.suts.child import Child
from adverse.types import Image

READY = '@adverse {"protocol": 1, "classes": ["person"], "ready": true}'
Script = Callable[[str], list[str]]


def failure(child: Child, picture: Image) -> str:
    """Ask about a picture and return the error, which must name the system."""
    with pytest.raises(SutError) as caught:
        child.detect([picture])
    assert "where: mine" in str(caught.value)
    return str(caught.value)


def gone(pid: int) -> bool:
    """Tell whether a process ends; a zombie has ended."""
    for _ in range(200):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_answers_come_back_in_order_and_together(on_request: Script) -> None:
    argv = on_request("""
        reply(number, [{"boxes": [[0, 0, len(pixels), p[0]]], "scores": [p[-1]], "labels": [0]}
                       for p in pixels])
    """)
    images = [np.full((6, 5 + k, 3), k + 1, np.uint8) for k in range(5)]
    with Child(argv, name="mine") as child:
        answers = child.detect(images)
        assert child.classes == ("person", "car")
    assert [answer.boxes[0, 2] for answer in answers] == [5] * 5
    assert [answer.scores[0] for answer in answers] == [1, 2, 3, 4, 5]
    assert child.detect([]) == []


def test_pixels_arrive_unchanged_even_of_views_and_large_images(on_request: Script) -> None:
    argv = on_request("""
        import hashlib
        digest = [int(hashlib.sha256(p).hexdigest()[:5], 16) for p in pixels]
        reply(number, [{"boxes": [[0, 0, 1, 1]], "scores": [d], "labels": [0]} for d in digest])
    """)
    large = np.random.default_rng(1).integers(0, 256, (1500, 2000, 3)).astype(np.uint8)
    images = [large, large[::2, ::-3], large[:7, :5]]
    wanted = [int(hashlib.sha256(image.tobytes()).hexdigest()[:5], 16) for image in images]
    with Child(argv, name="mine") as child:
        assert [int(answer.scores[0]) for answer in child.detect(images)] == wanted


@pytest.mark.fault(39)
def test_noise_on_stdout_and_much_on_stderr_change_nothing(on_request: Script, picture: Image) -> None:
    argv = on_request("""
        sys.stderr.write("warning: slow\\n" * 30000); sys.stderr.flush()
        say("progress " + "." * 3_000_000)
        say("\\xff not a reply")
        reply(number, [ONE])
    """)
    with Child(argv, name="mine") as child:
        for _ in range(3):
            assert child.detect([picture])[0].labels.tolist() == [1]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            "sys.stderr.write('no GPU\\n'); sys.stderr.flush(); os.kill(os.getpid(), signal.SIGSEGV)",
            "SIGSEGV",
        ),
        ("sys.exit(7)", "exit code 7"),
        ("say('@adverse {oops')", "not JSON"),
        ("say('@adverse [1]')", "not a JSON object"),
        ('say(\'@adverse {"id": 1, "detections": [], "detections": []}\')', "key 'detections' twice"),
        ("reply(number + 1, [ONE])", "another request"),
        ("reply(number, [])", "does not answer every image once"),
        ("say('@adverse {}')", "another request"),
        ("sys.stdout.close(); time.sleep(0.1); os._exit(3)", "exit code 3"),
    ],
)
def test_a_program_that_goes_wrong_is_buried_and_the_next_question_starts_it_anew(
    on_request: Script, tmp_path: Path, picture: Image, body: str, told: str
) -> None:
    once = tmp_path / "was-here"
    argv = on_request(f"""
        if os.path.exists({str(once)!r}):
            reply(number, [ONE])
        else:
            open({str(once)!r}, "w").close()
            {body}
    """)
    with Child(argv, name="mine") as child:
        assert child.classes == ("person", "car")
        pid = child.pid
        assert pid is not None
        assert told in failure(child, picture)
        assert child.pid is None
        assert gone(pid)
        assert child.detect([picture])[0].scores.tolist() == [0.5]


@pytest.mark.parametrize("ahead", [0, 1])
def test_an_answer_that_comes_before_its_request_is_not_taken_for_it(
    on_request: Script, picture: Image, ahead: int
) -> None:
    argv = on_request(f"""
        line = lambda n: "@adverse " + json.dumps({{"id": n, "detections": [ONE]}})
        say(line(number) + "\\n" + line(number + {ahead}))
    """)
    with Child(argv, name="mine") as child:
        for _ in range(2):
            assert len(child.detect([picture])) == 1
            assert "answered before it was asked" in failure(child, picture)


def test_an_answer_that_crosses_its_request_is_not_taken_for_it(on_request: Script, picture: Image) -> None:
    argv = on_request("""
        import select
        reply(number, [ONE])
        select.select([sys.stdin], [], [])  # the next request is there, and nobody has read it
        reply(number + 1, [ONE])
    """)
    with Child(argv, name="mine") as child:
        assert len(child.detect([picture])) == 1
        assert "another request" in failure(child, picture)


@pytest.mark.parametrize("evidence", ["none", "little is free", "the system counts a kill"])
def test_a_kill_is_the_machine_s_where_memory_is_short_and_not_again_and_again(
    on_request: Script, picture: Image, evidence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = itertools.count() if evidence == "the system counts a kill" else itertools.repeat(0)
    monkeypatch.setattr(child_process, "oom_kills", lambda: next(counts))
    monkeypatch.setattr(child_process, "memory_is_short", lambda: evidence == "little is free")
    with Child(on_request("os.kill(os.getpid(), signal.SIGKILL)"), name="mine") as child:
        kinds = []
        for _ in range(4):
            with pytest.raises(SutError, match="SIGKILL") as caught:
                child.detect([picture])
            kinds.append(type(caught.value))
    first = CrashError if evidence == "none" else OutOfMemoryError
    assert kinds == [first, first, CrashError, CrashError]


def test_the_end_of_stderr_and_stdout_is_told(on_request: Script, picture: Image) -> None:
    argv = on_request("""
        say("loading plan B")
        sys.stderr.write("x" * 5000 + "CUDA error 700\\n"); sys.stderr.flush()
        os._exit(1)
    """)
    with Child(argv, name="mine") as child:
        message = failure(child, picture)
    assert "CUDA error 700" in message
    assert "loading plan B" in message
    assert len(message) < 3000


@pytest.mark.fault(36)
@pytest.mark.parametrize("body", ["time.sleep(600)", "say('still here'); time.sleep(600)"])
def test_a_hang_is_ended_with_all_it_started(
    on_request: Script, tmp_path: Path, picture: Image, body: str
) -> None:
    note = tmp_path / "grandchild"
    argv = on_request(f"""
        import subprocess
        pid = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid
        open({str(note)!r}, "w").write(str(pid))
        {body}
    """)
    with Child(argv, name="mine", timeout_s=2) as child:
        _ = child.classes
        message = failure(child, picture)
    assert "hung" in message
    assert "after 2 s" in message
    assert gone(int(note.read_text("utf-8")))


def test_a_program_that_does_not_read_its_images_is_a_hang(program: Script) -> None:
    argv = program(f"import time; print('{READY}', flush=True); time.sleep(600)")
    with Child(argv, name="mine", timeout_s=0.5) as child:
        assert "has not read its images" in failure(child, np.zeros((2000, 2000, 3), np.uint8))


@pytest.mark.fault(37)
def test_memory_over_the_limit_is_ended(on_request: Script, picture: Image) -> None:
    argv = on_request("hog = bytearray(os.urandom(1)) * 400_000_000; time.sleep(600)")
    with Child(argv, name="mine", memory_limit_mb=200) as child:
        message = failure(child, picture)
    assert "too much memory" in message
    assert "at most 200 MB" in message


def test_a_reply_without_end_is_not_swallowed(
    on_request: Script, picture: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MAX_LINE_BYTES", 1 << 20)
    argv = on_request(
        "sys.stdout.write('@adverse [' + '1,' * 3_000_000); sys.stdout.flush(); time.sleep(600)"
    )
    with Child(argv, name="mine") as child:
        assert "too long" in failure(child, picture)


def test_an_error_the_program_reports_leaves_it_running(on_request: Script, picture: Image) -> None:
    argv = on_request("say('@adverse ' + json.dumps({'id': number, 'error': 'too dark'}))")
    with Child(argv, name="mine") as child:
        assert "too dark" in failure(child, picture)
        pid = child.pid
        assert "too dark" in failure(child, picture)
        assert child.pid == pid is not None


@pytest.mark.parametrize(
    "fails",
    [
        "say('@adverse ' + json.dumps({'id': number, 'error': 'too dark', 'traceback': 'in line 7'}))",
        "reply(number, [{'boxes': [[0, 0, 1]], 'scores': [1], 'labels': [0]}])",
    ],
)
def test_what_a_program_that_goes_on_wrote_about_a_failure_is_kept(
    on_request: Script, picture: Image, fails: str
) -> None:
    """Each failure has its own stderr, nothing of requests before, and a traceback that was reported."""
    argv = on_request(
        "seen = globals().get('seen', 0) + 1\n"
        "sys.stderr.write(f'about {seen}\\n'); sys.stderr.flush()\n"
        f"if seen % 2: {fails}\nelse: reply(number, [{{'boxes': [], 'scores': [], 'labels': []}}])"
    )
    reported = ["in line 7"] if "traceback" in fails else []
    with Child(argv, name="mine") as child:
        for number in (1, 3):
            with pytest.raises(SutError) as caught:
                child.detect([picture])
            assert (caught.value.output or "").splitlines() == [*reported, f"about {number}"]
            child.detect([picture])


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ('{"boxes": [[0, 0, 1, 1]], "scores": [float("nan")], "labels": [0]}', "not finite"),
        ('{"boxes": [[0, 0, 1]], "scores": [1], "labels": [0]}', "wrong shape"),
        ('{"boxes": [[0, 0, 1, 1]], "scores": [1], "labels": [2]}', "label 2"),
        ('"nothing"', "not a set of detections"),
    ],
)
def test_a_wrong_answer_is_a_fault_of_that_image_only(
    on_request: Script, picture: Image, answer: str, told: str
) -> None:
    with Child(on_request(f"reply(number, [{answer}])"), name="mine") as child:
        assert told in failure(child, picture)
        assert child.pid is not None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise SystemExit('no licence')", "no licence"),
        ("raise SystemExit", "run again, with --retry-faults if frames have failed"),
        ('print(\'@adverse {"protocol": 2, "ready": true}\', flush=True)', "does not speak this protocol"),
        ('print(\'@adverse {"protocol": 1, "ready": true}\', flush=True)', "what its labels mean"),
        ('print(\'@adverse {"error": "no weights"}\', flush=True)', "no weights"),
    ],
)
def test_a_program_that_cannot_start_says_why(program: Script, picture: Image, text: str, told: str) -> None:
    with Child(program(text), name="mine") as child:
        assert told in failure(child, picture)
        assert child.pid is None


def test_a_program_that_is_never_ready_is_given_up(program: Script, picture: Image) -> None:
    argv = program("import time; print('hello', flush=True); time.sleep(600)")
    with Child(argv, name="mine", start_timeout_s=1) as child:
        message = failure(child, picture)
    assert "did not start in time" in message
    assert "hello" in message


def test_a_program_that_is_not_there_has_a_fix(picture: Image) -> None:
    with Child(["./no-such-program"], name="mine") as child:
        message = failure(child, picture)
    assert "no-such-program" in message
    assert "Fix:" in message


def test_close_ends_the_program_and_can_be_called_twice(on_request: Script, picture: Image) -> None:
    child = Child(on_request("reply(number, [ONE])"), name="mine")
    child.detect([picture])
    pid = child.pid
    child.close()
    child.close()
    assert pid is not None
    assert gone(pid)


def test_forgetting_a_child_ends_it(on_request: Script, picture: Image) -> None:
    child = Child(on_request("reply(number, [ONE])"), name="mine")
    child.detect([picture])
    pid = child.pid
    del child
    assert pid is not None
    assert gone(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can end a program that hangs")
def test_a_hung_program_does_not_outlive_us(on_request: Script, tmp_path: Path) -> None:
    argv = on_request("time.sleep(600)")
    parent = tmp_path / "parent.py"
    parent.write_text(
        "import sys, numpy as np\n"
        "from adverse.suts.child import Child\n"
        f"child = Child({argv!r}, name='mine')\n"
        "child.classes\n"
        "print(child.pid, flush=True)\n"
        "child.detect([np.zeros((9, 9, 3), np.uint8)])\n",
        "utf-8",
    )
    process = subprocess.Popen([sys.executable, str(parent)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    time.sleep(0.3)
    process.kill()
    process.wait()
    process.stdout.close()
    assert gone(pid)


def test_from_another_thread_the_program_runs_as_well(on_request: Script, picture: Image) -> None:
    answers: list[int] = []
    with Child(on_request("reply(number, [ONE])"), name="mine") as child:
        thread = threading.Thread(target=lambda: answers.append(len(child.detect([picture])[0])))
        thread.start()
        thread.join()
        assert answers == [1]
        assert len(child.detect([picture])[0]) == 1


def test_a_forked_copy_does_not_end_the_program(on_request: Script, picture: Image) -> None:
    with Child(on_request("reply(number, [ONE])"), name="mine") as child:
        child.detect([picture])
        child._owner = os.getpid() + 1  # as it looks to a process that was forked from its owner
        pid, running = child.pid, child._running
        child.close()
        assert pid is not None
        assert psutil.pid_exists(pid)
        child._owner, child._running = os.getpid(), running
        assert child.detect([picture])[0].labels.tolist() == [1]
