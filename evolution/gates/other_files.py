"""The same files as another checkout brings them: in another order, with other times.

A checkout and the day on which an image is built decide the times of files, and a file system the
order in which a folder lists them. What stays: times that somebody set to a day of his own, the
order of times among files that were made by a build, hard links, and everything in `.git`.
"""

from __future__ import annotations

from dataclasses import replace

from sandbox.contracts import SandboxFile, SolverSpec, TrialSpec
from sandbox.warden.files import FIXED_TIME

NOT_DONE = 97
"""The exit status of a solver before which nothing could be changed."""
_NAME = ".elsewhere.pl"
_SCRIPT = """\
# usage: perl THIS list | early | late | rest, in the folder of the work
use strict;
use File::Find;
use Cwd;
my ($what, $fixed, $day, $now) = ($ARGV[0], FIXED, 86400, time);
exit STATUS if getcwd() eq "/";
my @files;
find({no_chdir => 1, wanted => sub {
    if (-d && !-l && /\\/\\.git$/) { $File::Find::prune = 1; return }
    my @info = lstat or return;
    push @files, [$_, @info[4, 7, 9]] if -f _ && $info[3] == 1;
}}, ".");
my $size = 0;
$size += $_->[2] for @files;
exit STATUS if @files > 3000 || $size > 8 << 20;
@files = sort { $a->[0] cmp $b->[0] } @files;
if ($what eq "early" || $what eq "late") {
    my $turn = $what eq "late" ? @files : 0;
    for my $file (@files) {
        my ($path, undef, undef, $time) = @$file;
        if ($time == $fixed) { $time += 40 * $day + 61 * abs($turn - $main::at++) }
        elsif ($time > $now - 30 * $day) { $time -= 2 * $day }
        utime $time, $time, $path;
    }
    exit 0;
}
if ($what eq "rest") {
    my @own = grep { $> == 0 || $_->[1] == $> } @files;
    my @rest = grep { $> != 0 && $_->[1] != $> } @files;
    exit 0 unless @own;
    my ($oldest) = sort { $a <=> $b } map { $_->[3] } @own;
    exit 0 if grep { $_->[3] >= $oldest - 7200 } @rest;
    utime $_->[3] - 7200, $_->[3] - 7200, $_->[0] for @own;
}
# Some file systems list what was made last first.
my ($probe, $is_down) = ("/tmp/.elsewhere-$$", $what eq "list");
mkdir $probe or exit STATUS;
for my $name ("a", "b") { open my $new, ">", "$probe/$name"; close $new }
opendir my $seen, $probe;
my ($first) = grep { !/^\\.+$/ } readdir $seen;
unlink "$probe/a", "$probe/b";
rmdir $probe;
$is_down = !$is_down if $first ne "a";
sub turn {  # makes a folder anew, its entries in order; one that holds more than files stays
    my ($folder) = @_;
    opendir my $list, $folder or return 0;
    my @names = sort grep { !/^\\.\\.?$/ } readdir $list;
    my $is_whole = $folder ne ".";
    return 0 if $folder =~ /\\/\\.git$/;
    for my $name (@names) {
        my @info = lstat "$folder/$name";
        if (-d _) { turn("$folder/$name") or $is_whole = 0 }
        elsif (!((-f _ || -l _) && $info[3] == 1)) { $is_whole = 0 }
    }
    my ($new, @info) = ("$folder.elsewhere", stat $folder);
    return 0 unless $is_whole && mkdir $new, 0700;
    @names = reverse @names if $is_down;
    my @moved = grep { rename "$folder/$_", "$new/$_" } @names;
    if (@moved == @names && rmdir $folder) {
        chown @info[4, 5], $new;
        chmod $info[2] & 07777, $new;
        utime @info[8, 9], $new;
        return rename $new, $folder;
    }
    rename "$new/$_", "$folder/$_" for @moved;
    rmdir $new;
    return 0;
}
turn(".");
""".replace("FIXED", str(FIXED_TIME)).replace("STATUS", str(NOT_DONE))


def listed_otherwise(spec: TrialSpec) -> TrialSpec:
    """The trial, its folders listing what they hold from the last name to the first."""
    return _prepared(spec, f"{_call('list')}; ")


def checked_out(spec: TrialSpec, *, is_late: bool) -> TrialSpec:
    """The trial, its files two days older, or as a checkout brings them, the last one newest.

    With `is_late` the first one is the newest. Where nothing could be changed the solver leaves
    with `NOT_DONE`.
    """
    return _prepared(spec, f"{_call('late' if is_late else 'early')} || exit {NOT_DONE}; ")


def rested(spec: TrialSpec) -> TrialSpec:
    """The trial, its files two hours older when they are judged, and listed by their names."""
    solver = _with_script(spec.solver)
    keep = f"cp /solution/{_NAME} /tmp/{_NAME}; rm -f /solution/{_NAME}"
    command = f"{keep}; {solver.command}; status=$?; perl /tmp/{_NAME} rest; rm -f /tmp/{_NAME}"
    return replace(spec, solver=replace(solver, command=f"{command}; exit $status"))


def _prepared(spec: TrialSpec, before: str) -> TrialSpec:
    solver = _with_script(spec.solver)
    return replace(spec, solver=replace(solver, command=f"{before}{solver.command}"))


def _call(what: str) -> str:
    return f"perl /solution/{_NAME} {what}; status=$?; rm -f /solution/{_NAME}; (exit $status)"


def _with_script(solver: SolverSpec) -> SolverSpec:
    script = SandboxFile(_NAME, _SCRIPT.encode())
    return replace(solver, files=tuple(sorted((*solver.files, script))))
