"""Makes a wheel of the Python package and installs it into a fresh environment.

The fresh environment sees the packages of the one that runs this script, which sees PyTorch's.
"""

import argparse
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path


def pip(*arguments):
    """Runs pip without a network; what is needed is there."""
    subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments], check=True
    )


def make_environment(fresh):
    """Without pip of its own: this interpreter's installs into it."""
    shutil.rmtree(fresh, ignore_errors=True)
    venv.create(fresh, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(fresh)}))
    folders = [sysconfig.get_path("purelib"), *torch_folders()]
    (site / "inherited.pth").write_text("".join(f"{folder}\n" for folder in folders))


def torch_folders():
    """Where this environment's own .pth files point."""
    for file in Path(sysconfig.get_path("purelib")).glob("verbatim-torch.pth"):
        yield from file.read_text().split("\n")[:1]


def make_wheel(package, built, folder):
    """A wheel with the compiled files `built`."""
    pip(
        "wheel", "--no-index", "--no-build-isolation", "--no-deps", "--wheel-dir", str(folder),
        f"--config-settings=build-dir={folder / 'build'}",
        f"--config-settings=cmake.define.VERBATIM_BUILT={';'.join(built)}",
        str(package),
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    return wheel


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, required=True, help="folder with pyproject.toml")
    parser.add_argument("--built", action="append", required=True, help="compiled file to pack")
    parser.add_argument("--fresh", type=Path, required=True, help="environment to make anew")
    options = parser.parse_args()
    make_environment(options.fresh)
    with tempfile.TemporaryDirectory() as folder:
        wheel = make_wheel(options.package, options.built, Path(folder))
        pip(
            "--python", str(options.fresh / "bin/python3"),
            "install", "--no-index", "--no-deps", "--force-reinstall", str(wheel),
        )  # fmt: skip
    script = "import verbatim; print(verbatim.__file__, verbatim.executable())"
    subprocess.run([options.fresh / "bin/python3", "-c", script], check=True, cwd=options.fresh)


if __name__ == "__main__":
    main()
