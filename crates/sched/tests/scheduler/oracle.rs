//! Small cases, checked against answers found by trying everything.

mod formation;
