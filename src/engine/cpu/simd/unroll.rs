//! Numbers of taps and terms that loops are compiled for.

/// What `$work` gives with `$name`, a constant, one of the numbers listed: the one that `$count` is.
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
