"""The commands together.

torch and scikit-learn take seconds to import, so each command imports them when it runs.
"""

from functools import partial

import typer

from fairbits.commands.audit import audit
from fairbits.commands.bench import bench
from fairbits.commands.certify import certify
from fairbits.commands.data import data
from fairbits.commands.fit import fit
from fairbits.commands.key import key
from fairbits.commands.merge import merge
from fairbits.commands.path import path
from fairbits.commands.plan import plan
from fairbits.commands.predict import predict
from fairbits.commands.report import report
from fairbits.commands.reproduce import reproduce
from fairbits.commands.serve import serve
from fairbits.commands.terminal import Commands, options, run
from fairbits.commands.transform import transform
from fairbits.commands.watch import watch

app = typer.Typer(
    name="fairbits",
    cls=Commands,
    epilog="Exit codes: 0 success, 1 bad input, 2 wrong usage, 3 not certified, 4 certificate contradicted, "
    "5 certified but not useful, 70 bug in fairbits, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.callback()(options)
_shared = plan, fit, transform, predict, merge, key, serve, audit, certify, watch, report, path, reproduce, bench
for _command in _shared:
    app.command()(_command)
app.add_typer(data, name="data")
main = partial(run, app)
