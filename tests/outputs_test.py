#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What verbs write for programs: every --json is an object of a schema that is shipped, with its results
under one key; every --csv is a table with the columns that it always had.

    outputs_test.py ESPALIER [TEST...]
"""

import base64
import csv
import gzip
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zlib

import json_schema

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
ESPALIER = None

COLLECTIVE = ("topology,gpus,ranks,profile,protocol,collective,root,in_place,algorithm,chosen,dtype,op,backend,"
              "size_bytes,chunk_bytes,time_s,launch,benchmark_s,expected_error,speedup,min_time_s,max_time_s,"
              "algbw_gbps,busbw_gbps,bound_gbps,bound_time_s,fraction,transfers,wrong,measured_s,measured_error,"
              "scenario,block,links_scope,relays,refused,skipped")
TRAINING = ("topology,gpus,ranks,profile,algorithm,dtype,transfers,model,batch,step_s,fusion_bytes,overlap,"
            "message_bytes,compute_s,communication_s,exposed_s,hidden_s,iteration_s,samples_per_s,efficiency,"
            "scenario,block,links_scope,relays,refused,skipped")
# For each verb a line, the schema that it writes, its columns, and at least how many rows.
VERBS = {
    "sim": ("--topology dgx1-v100 --size 1KiB,1MiB --algorithm ring chain optimal nccl --critical-path --explain",
            "report/2", COLLECTIVE, 6),
    "exec": ("--ranks 3 --size 1KiB --iters 1 --algorithm ring", "report/2", COLLECTIVE, 2),
    "compare": ("--size 1KiB --iters 1 --topology full:n=3 --collective broadcast --algorithm all",
                "compare/2",
                "machine,profile,backend,collective,algorithm,chosen,in_place,ranks,size_bytes,chunk_bytes,"
                "predicted_s,expected_error,measured_s,min_time_s,max_time_s,error,wrong,launch,speedup,refused,"
                "skipped,library,library_s,library_wrong,measured_speedup,as_probed", 3),
    "tune": ("--topology v100-pcie --size 4KiB,4MiB --algorithm ring all_pairs --budget 60", "tune/2", COLLECTIVE, 2),
    "plan": ("--topology dgx1-v100 --collective broadcast", "plan/2",
             "topology,collective,algorithm,profile,gpus,relays,ranks,root,algbw_gbps,bound_gbps,fraction,link,"
             "units,units_in_all,capacity_gbps,utilization", 8),
    "train": ("--model resnet50 --topology dgx1-v100 --algorithm ring --gpu-counts 2,8", "report/2", TRAINING, 2),
    "run": (f"{GOLDEN}/inputs/measured.yaml", "report/2", COLLECTIVE, 2),
    "verify": ("--algorithm ring --ranks 4", "verify/1",
               "program,ok,proof,order_consistent,combines_in_switch,problems,rule,message,file,line", 2),
    "list": ("algorithms", "list/1", "name,title,detail,text", 10),
    "fit": ("LOG --topology dgx-a100", "fit/1",
            "file,line,collective,in_place,algorithm,protocol,launch,size_bytes,measured_s,before_s,error_before,"
            "fitted_s,error_fitted", 8),
    "probe": ("--virtual 1", "probe/1", "method,from,to,latency_s,gbps,both_ways_gbps", 3),
    "show": ("dgx1-v100", "machine/1",
             "a,b,kind,class,count,gbps,measured_gbps,latency_s,duplex,medium,what_if", 16),
}


def run(words):
    done = subprocess.run([ESPALIER, *words], capture_output=True, timeout=600, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout.decode()


class Outputs(unittest.TestCase):
    def check_document(self, text, schema=None):
        document = json.loads(text)
        self.assertIsInstance(document, dict)
        self.assertEqual(json_schema.document_problems(document), [])
        if schema is not None:
            self.assertEqual(document["schema"], "espalier." + schema)
        self.assertIsInstance(document["results"], list)
        return document

    def check_table(self, text, columns, least):
        self.assertTrue(text.startswith(columns + "\r\n"), text[:500])
        rows = list(csv.reader(io.StringIO(text)))
        self.assertGreaterEqual(len(rows) - 1, least)
        for row in rows:
            self.assertEqual(len(row), len(rows[0]))

    def check_verb(self, words, schema, columns, least):
        with tempfile.TemporaryDirectory() as folder:
            files = [str(pathlib.Path(folder) / name) for name in ("a.json", "a.csv")]
            if "LOG" in words:  # small messages only, which take little time to fit
                log = ROOT / "tests/scenarios/measured/a100x8_all_reduce.txt"
                cut = pathlib.Path(folder) / "cut.txt"
                cut.write_text("".join(log.read_text().splitlines(True)[:26]))
                words = [str(cut) if word == "LOG" else word for word in words]
            text = run([*words, "--json", files[0], "--csv", files[1]])
            self.assertNotEqual(text, "")  # files replace nothing
            document = self.check_document(pathlib.Path(files[0]).read_bytes().decode(), schema)
            self.check_table(pathlib.Path(files[1]).read_bytes().decode(), columns, least)
        return document

    def test_every_verb_with_a_table_writes_both(self):
        reference = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
        verbs = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", reference, re.S | re.M))
        for option in ("--json", "--csv"):
            self.assertEqual({verb for verb, text in verbs.items() if f"| `{option} FILE`" in text}, set(VERBS))
        for verb, (words, schema, columns, least) in VERBS.items():
            with self.subTest(verb=verb):
                self.check_verb([verb, *words.split()], schema, columns, least)

    def test_models_are_shown(self):
        self.check_verb(["show", "resnet50"], "model/1", "name,elements,uses,share", 100)

    def test_tables_replace_the_text(self):
        self.check_table(run(["sim", "--topology", "full:n=3", "--algorithm", "ring", "--csv", "-"]), COLLECTIVE, 1)
        self.check_document(run(["list", "--json", "-"]), "list/1")

    def test_the_five_fastest_are_five_programs(self):
        # What `optimal` runs there is nccl_rings, which has a name of its own.
        asked = ["sim", "--topology", "ring:n=4", "--size", "64MiB"]
        every = run([*asked, "--algorithm", "all"])
        self.assertIn("  optimal (nccl_rings) ", every)
        shown = run(asked)
        self.assertNotIn("optimal", shown.split("\n#\n")[1])
        self.assertEqual(len(re.findall(r"^ +67108864  ", shown, re.M)), 5)
        alike = len(re.findall(r"^ +67108864  ", every, re.M)) - 1
        self.assertIn(f"The 5 fastest of {alike} that were simulated", shown)

    def test_studies_say_what_was_measured(self):
        study = str(GOLDEN / "inputs" / "measured.yaml")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "a.csv"
            document = self.check_document(run(["run", study, "--json", "-", "--csv", str(file)]), "report/2")
            rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))
        measured = [one["measured"] for one in document["results"] if "measured" in one]
        self.assertGreater(len(measured), 1)
        self.assertEqual([float(row["measured_s"]) for row in rows if row["measured_s"]],
                         [one["time_s"] for one in measured])
        for one in document["results"]:
            if "measured" in one:
                time_s = one["measured"]["time_s"]
                self.assertAlmostEqual(one["measured"]["error"], one["benchmark_s"] / time_s - 1, 6)

    def test_traces_are_compressed_by_their_names(self):
        words = ["sim", "--topology", "dgx-a100", "--algorithm", "ring", "--size", "1MiB", "--trace-ops", "100"]
        with tempfile.TemporaryDirectory() as folder:
            plain, packed = pathlib.Path(folder) / "a.json", pathlib.Path(folder) / "a.json.gz"
            for file in (plain, packed):
                run([*words, "--trace", str(file)])
            text = plain.read_bytes()
            self.assertEqual(gzip.decompress(packed.read_bytes()), text)
            self.assertLess(packed.stat().st_size, len(text) / 4)
        trace = json.loads(text)
        ops = [event["dur"] for event in trace["traceEvents"] if event["ph"] == "X"]
        self.assertEqual(len(ops), 100)
        self.assertEqual(trace["otherData"]["ops"], 100)
        self.assertGreater(trace["otherData"]["shorter_ops_left_out"], 0)

    def test_golden_files_keep_to_their_schemas(self):
        seen = set()
        for file in sorted(GOLDEN.glob("*.txt")):
            text = file.read_text(encoding="utf-8")
            found = re.search(r"^--- stdout\n(\{.*?^\}\n)", text, re.S | re.M)
            if "--json -" not in text or not found:
                continue
            with self.subTest(file=file.name):
                document = self.check_document(found[1].replace("MASKED", "0"))
                seen.add(document["schema"])
        self.assertGreater(len(seen), 4)

    def test_pages_hold_what_their_schema_says(self):
        for words in (["--topology", "ring:n=3", "--algorithm", "ring"],
                      ["--topology", "dgx2", "--collective", "broadcast", "--algorithm", "nccl", "--size", "8GiB"]):
            packed = re.search(r'(?<=id="data">)[^<]*', run(["sim", *words, "--html", "-"])).group(0)
            document = json.loads(zlib.decompress(base64.b64decode(packed)))
            self.assertEqual(document["schema"], "espalier.page/1")
            self.assertEqual(json_schema.document_problems(document), [])
            self.assertEqual("counted_in" in document["runs"][0], "dgx2" in words)


if __name__ == "__main__":
    ESPALIER = str(pathlib.Path(sys.argv[1]).resolve())
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
