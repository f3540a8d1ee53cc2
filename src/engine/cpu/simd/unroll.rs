//! `unroll!`: a run-time count becomes a constant of the compiled loop.

/// Evaluates `$work` with the constant `$name` equal to `$count`, which must be one of the numbers listed.
macro_rules! unroll {
    ($count:expr, [$($number:literal),+], $name:ident => $work:expr) => {
        match $count {
            $($number => {
                const $name: usize = $number;
                $work
            })+
            n => unreachable!("no loop was compiled for {n}"),
        }
    };
}

pub(in crate::engine::cpu) use unroll;
