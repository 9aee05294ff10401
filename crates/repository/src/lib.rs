//! Model repositories in Triton's layout.
