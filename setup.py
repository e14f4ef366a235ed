"""The folders `pipeline`, `jobs` and `configs` become one package; what is in them is found."""

from setuptools import find_namespace_packages, setup

FOLDERS = {"bagbasis": "pipeline", "bagbasis.jobs": "jobs", "bagbasis.configs": "configs"}

setup(
    package_dir=FOLDERS,
    packages=[
        *FOLDERS,
        *(
            f"{package}.{name}"
            for package, folder in FOLDERS.items()
            for name in find_namespace_packages(folder)
            if "__pycache__" not in name
        ),
    ],
)
