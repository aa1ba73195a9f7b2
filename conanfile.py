"""The Conan package of undertick.h: `conan create .`."""

import os
import re

from conan import ConanFile
from conan.tools.files import copy, load


class Undertick(ConanFile):
    name = "undertick"
    description = "Records what a running program does at about the price of reading the clock"
    topics = ("profiling", "tracing", "latency", "measurement", "header-only")
    url = homepage = "https://github.com/undertick/undertick"
    license = "MIT OR Apache-2.0"
    package_type = "header-library"
    exports = "Cargo.toml"
    exports_sources = "include/*", "LICENSE-*"
    no_copy_source = True

    def set_version(self):
        manifest = load(self, os.path.join(self.recipe_folder, "Cargo.toml"))
        self.version = re.search(r'^version = "(.*)"$', manifest, re.MULTILINE)[1]

    def package(self):
        copy(self, "undertick*.h*", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))
        copy(self, "LICENSE-*", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "Undertick")
        self.cpp_info.set_property("cmake_target_name", "Undertick::Undertick")
        self.cpp_info.set_property("pkg_config_name", "undertick")
