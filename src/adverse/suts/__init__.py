"""SUT adapters: one file each, every one a function under @sut that returns a Detector or Recorded."""
