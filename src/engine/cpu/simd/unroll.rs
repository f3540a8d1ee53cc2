//! Numbers of taps and terms that loops are compiled for.

/// What `$work` gives with `$name`, a constant, one of the numbers listed: the one that `$count` is.
macro_rules! with_count {
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

pub(in crate::engine::cpu) use with_count;
