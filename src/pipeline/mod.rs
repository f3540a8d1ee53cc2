//! Stages in threads.
