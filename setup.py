"""The folders `pipeline`, `jobs` and `configs` become one package; what is in them is found."""

import sys

from setuptools import find_namespace_packages, setup

FOLDERS = {"bagbasis": "pipeline", "bagbasis.jobs": "jobs", "bagbasis.configs": "configs"}

# `bags experiment` is for a checkout, whose installation is editable. The sdist has the files.
EXCLUDED = [] if "editable_wheel" in sys.argv else ["experiments", "experiments.*"]

setup(
    package_dir=FOLDERS,
    packages=[
        *FOLDERS,
        *(
            f"{package}.{name}"
            for package, folder in FOLDERS.items()
            for name in find_namespace_packages(folder, exclude=EXCLUDED)
            if "__pycache__" not in name
        ),
    ],
)
