//! The child: enters the sandbox and tries one thing.
//!
//! `try [--open] [--thread] [--busy] [--hide ERRNO] [--read P].. [--write P].. [--devices] ACTION ARGUMENT..`

use framepipe::program::sandbox::{Permissions, enter};
use std::fs;
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;

pub(crate) fn run(arguments: impl Iterator<Item = String>) {
    let mut arguments = arguments.peekable();
    let mut permissions = Permissions::default();
    let (mut open, mut thread) = (false, false);
    while let Some(flag) = arguments.next_if(|argument| argument.starts_with("--")) {
        let mut value = || arguments.next().expect("a value");
        match flag.as_str() {
            "--open" => open = true,
            "--thread" => thread = true,
            "--busy" => drop(std::thread::spawn(|| {
                std::thread::sleep(std::time::Duration::from_secs(60));
            })),
            "--hide" => hide_landlock(value().parse().expect("a number")),
            "--read" => permissions.read.push(value().into()),
            "--write" => permissions.write.push(value().into()),
            "--devices" => permissions.devices = true,
            _ => panic!("no flag {flag}"),
        }
    }
    if !open {
        match enter(&permissions) {
            Ok(status) => eprintln!("{status:?}\n{status}"),
            Err(error) => {
                let cause = std::error::Error::source(&error);
                println!(
                    "no sandbox: {error} [{}]",
                    cause.map(ToString::to_string).unwrap_or_default()
                );
                return;
            }
        }
    }
    let arguments: Vec<String> = arguments.collect();
    let tried = if thread {
        std::thread::spawn(move || attempt(&arguments))
            .join()
            .expect("no panic")
    } else {
        attempt(&arguments)
    };
    match tried {
        Ok(()) => println!("allowed"),
        Err(error) => println!("refused: {:?}", error.raw_os_error()),
    }
}

fn attempt(arguments: &[String]) -> io::Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["read", path] => fs::read(path).map(drop),
        ["list", path] => fs::read_dir(path).map(drop),
        ["write", path] => fs::write(path, "new"),
        ["part", part, whole] => fs::write(part, "new").and_then(|()| fs::rename(part, whole)),
        ["rename", from, to] => fs::rename(from, to),
        ["remove", path] => fs::remove_file(path),
        ["folder", path] => fs::create_dir(path).and_then(|()| fs::remove_dir(path)),
        ["link", to, path] => std::os::unix::fs::symlink(to, path),
        ["hard-link", to, path] => fs::hard_link(to, path),
        ["empty", path] => fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_TRUNC)
            .open(path)
            .map(drop),
        ["modes", path] => fs::metadata(path).and_then(|file| fs::set_permissions(path, file.permissions())),
        ["own-modes", path] => {
            let file = fs::File::create(path)?;
            file.set_permissions(file.metadata()?.permissions())?;
            file.set_modified(std::time::SystemTime::UNIX_EPOCH)?;
            file.set_len(7)
        }
        ["tcp", address] => TcpStream::connect(address).map(drop),
        ["udp", address] => UdpSocket::bind("127.0.0.1:0")?.send_to(b"x", address).map(drop),
        ["unix", path] => UnixStream::connect(path).map(drop),
        ["pair"] => UnixStream::pair().map(drop),
        ["listen", path] => UnixListener::bind(path).map(drop),
        ["run", program] => Command::new(program).status().map(drop),
        ["stat", path] => fs::metadata(path).map(drop),
        // As the CUDA driver does.
        ["name-thread"] => fs::write(format!("/proc/self/task/{}/comm", std::process::id()), "named"),
        ["ordinary"] => ordinary(),
        ["call", number, ref values @ ..] => call(number, values),
        _ => panic!("no action {arguments:?}"),
    }
}

/// What a program does all the time.
fn ordinary() -> io::Result<()> {
    std::thread::available_parallelism()?;
    fs::write("/dev/null", "x")?;
    for path in [
        "/dev/urandom",
        "/proc/self/status",
        "/proc/meminfo",
        "/proc/self/task",
    ] {
        fs::metadata(path)?;
        fs::File::open(path)?;
    }
    io::pipe()?;
    let pid = std::process::id().to_string();
    call(&libc::SYS_kill.to_string(), &[&pid, "0"])?;
    std::thread::spawn(|| std::backtrace::Backtrace::force_capture().to_string().len())
        .join()
        .map(drop)
        .map_err(|_| io::Error::other("panicked"))
}

/// Any system call, by its number.
#[expect(unsafe_code, reason = "a test of calls that no safe interface has")]
fn call(number: &str, values: &[&str]) -> io::Result<()> {
    let parse = |value: &str| value.parse::<libc::c_long>().expect("a number");
    let at = |index: usize| values.get(index).map_or(0, |value| parse(value));
    // SAFETY: the tests pass numbers and null pointers only, which the kernel checks.
    let result = unsafe { libc::syscall(parse(number), at(0), at(1), at(2), at(3), at(4), at(5)) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Makes the kernel look like one without Landlock.
fn hide_landlock(errno: u32) {
    let rules = [(libc::SYS_landlock_create_ruleset, Vec::new())].into();
    let here = std::env::consts::ARCH.try_into().expect("an architecture");
    let action = seccompiler::SeccompAction::Errno(errno);
    let filter = seccompiler::SeccompFilter::new(rules, seccompiler::SeccompAction::Allow, action, here);
    let program: seccompiler::BpfProgram = filter.and_then(TryInto::try_into).expect("a filter");
    seccompiler::apply_filter(&program).expect("seccomp");
}
