# CMake generated Testfile for 
# Source directory: /tmp/w-fin
# Build directory: /tmp/w-fin/b
# 
# This file includes the relevant testing commands required for 
# testing this directory and lists subdirectories to be tested as well.
subdirs("tests")
