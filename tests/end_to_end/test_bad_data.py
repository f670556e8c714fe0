#!/usr/bin/env python3
"""Data that is damaged is refused with the file's name, what was found and what was expected."""

import unittest

from harness import EndToEndTest, idx_bytes

IMAGES = idx_bytes("train-images-idx3-ubyte")
LABELS = idx_bytes("train-labels-idx1-ubyte")
COUNT = 1797


class BadData(EndToEndTest):
    def refuse_data(self, *parts, images=None, labels=None):
        folder = self.write_data(images, labels)
        self.refuse(["train", self.write_spec(), "-o", self.folder / "run.db", "--data", folder], 3,
                    *parts)
        self.assertFalse((self.folder / "run.db").exists())

    def test_truncated_images(self):
        self.refuse_data("train-images-idx3-ubyte", "1797 images of 8 × 8", images=IMAGES[:-1])

    def test_truncated_header(self):
        self.refuse_data("train-images-idx3-ubyte", "header takes 16 bytes", images=IMAGES[:10])

    def test_trailing_bytes(self):
        self.refuse_data("train-labels-idx1-ubyte", "1797 labels", labels=LABELS + b"\0")

    def test_another_number_of_labels(self):
        labels = LABELS[:4] + (COUNT - 1).to_bytes(4, "big") + LABELS[8:-1]
        self.refuse_data("train-labels-idx1-ubyte", "1796 labels", "1797 images", labels=labels)

    def test_swapped_files(self):
        self.refuse_data("train-images-idx3-ubyte", "magic number 0x00000801 found",
                         "0x00000803 expected", images=LABELS, labels=IMAGES)

    def test_damaged_gzip(self):
        self.refuse_data("train-images-idx3-ubyte", images=b"\x1f\x8b\x08" + bytes(40))

    def test_missing_file(self):
        (self.write_data() / "train-labels-idx1-ubyte").unlink()
        self.refuse(["train", self.write_spec(), "-o", self.folder / "run.db",
                     "--data", self.folder / "data"], 3, "train-labels-idx1-ubyte")

    def test_missing_folder(self):
        """--data without a folder, and a spec's folder that is not there."""
        self.refuse(["train", self.write_spec(), "-o", self.folder / "run.db", "--data", "nowhere"],
                    3, "--data nowhere is no folder")
        self.refuse(["train", self.write_spec({"data.folder": "nowhere"}), "-o",
                     self.folder / "run.db"], 3, f"{self.folder}/nowhere does not exist")


if __name__ == "__main__":
    unittest.main()
