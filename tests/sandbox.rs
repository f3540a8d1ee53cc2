//! The sandbox, tried from inside: each check starts this program once more, as a child that enters it and
//! tries one thing. A sandbox is for good and wants a process of one thread, which a test harness is not.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "sandbox/attempt.rs"]
mod attempt;

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

const EPERM: &str = "refused: Some(1)";
const EACCES: &str = "refused: Some(13)";
const EXDEV: &str = "refused: Some(18)";
const ALLOWED: &str = "allowed";

fn main() {
    if std::env::args().nth(1).as_deref() == Some("try") {
        return attempt::run(std::env::args().skip(2));
    }
    if !has_landlock() {
        println!("SKIPPED: this kernel has no Landlock, so that the sandbox is only refused here");
        return a_kernel_without_landlock_is_named();
    }
    let checks: &[(&str, fn())] = &[
        (
            "reads_what_is_allowed_and_nothing_else",
            reads_what_is_allowed_and_nothing_else,
        ),
        (
            "a_single_file_can_be_read_without_its_neighbours",
            a_single_file_can_be_read_without_its_neighbours,
        ),
        ("other_processes_are_closed", other_processes_are_closed),
        ("writes_inside_the_folder_only", writes_inside_the_folder_only),
        ("nothing_is_moved_in_or_out", nothing_is_moved_in_or_out),
        (
            "files_outside_are_not_emptied_and_keep_their_modes",
            files_outside_are_not_emptied_and_keep_their_modes,
        ),
        ("the_network_is_closed", the_network_is_closed),
        (
            "unix_sockets_are_for_the_cuda_driver_only",
            unix_sockets_are_for_the_cuda_driver_only,
        ),
        (
            "threads_are_named_through_files_by_the_cuda_driver_only",
            threads_are_named_through_files_by_the_cuda_driver_only,
        ),
        ("no_other_program_runs", no_other_program_runs),
        ("ways_round_are_closed", ways_round_are_closed),
        ("ordinary_work_goes_on", ordinary_work_goes_on),
        ("a_second_thread_is_refused", a_second_thread_is_refused),
        ("a_missing_path_is_named", a_missing_path_is_named),
        (
            "a_kernel_without_landlock_is_named",
            a_kernel_without_landlock_is_named,
        ),
    ];
    for (name, check) in checks {
        check();
        println!("test {name} ... ok");
    }
}

/// True if the kernel can confine a process to files.
fn has_landlock() -> bool {
    House::new().child(&[], &["stat", "/"]) == ALLOWED
}

/// `in/clip` and `in/link` (to `secret`), `out`, `secret` beside them.
struct House(tempfile::TempDir);

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["in", "out", "elsewhere"] {
            fs::create_dir(at(name)).unwrap();
        }
        for name in ["in/clip", "in/other", "out/old", "secret", "elsewhere/file"] {
            fs::write(at(name), "text").unwrap();
        }
        symlink(at("secret"), at("in/link")).unwrap();
        symlink(at("in/other"), at("in/inner")).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// What the child says. An argument that begins with `@` is a path of the house.
    fn child(&self, flags: &[&str], action: &[&str]) -> String {
        let own = |text: &&str| {
            text.strip_prefix('@')
                .map_or((*text).to_owned(), |name| self.path(name))
        };
        let output = Command::new(std::env::current_exe().unwrap())
            .arg("try")
            .args(flags.iter().map(own))
            .args(action.iter().map(own))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(output.status.success(), "{flags:?} {action:?}: {text} {output:?}");
        text.trim().to_owned()
    }

    /// Checks an action inside the sandbox, on the first thread and on a second. Where it is refused, it must
    /// be possible without a sandbox: else the test shows nothing.
    fn expect(&self, action: &[&str], expected: &str) {
        let inside = ["--read", "@in", "--write", "@out"];
        assert_eq!(self.child(&inside, action), expected, "{action:?}");
        let threaded = Self::new();
        assert_eq!(
            threaded.child(&[&inside[..], &["--thread"]].concat(), action),
            expected,
            "{action:?}"
        );
        if expected != ALLOWED {
            assert_eq!(
                Self::new().child(&["--open"], action),
                ALLOWED,
                "{action:?} without a sandbox"
            );
        }
    }
}

fn reads_what_is_allowed_and_nothing_else() {
    let house = House::new();
    house.expect(&["read", "@in/clip"], ALLOWED);
    house.expect(&["list", "@in"], ALLOWED);
    house.expect(&["read", "@in/inner"], ALLOWED);
    house.expect(&["read", "@in/link"], EACCES);
    house.expect(&["read", "@in/../secret"], EACCES);
    house.expect(&["read", "@secret"], EACCES);
    house.expect(&["list", "@"], EACCES);
    house.expect(&["read", "/etc/passwd"], EACCES);
    house.expect(&["read", "/proc/self/root/etc/passwd"], EACCES);
    house.expect(&["list", "/proc"], EACCES);
    house.expect(&["stat", "/etc/passwd"], ALLOWED);
}

fn a_single_file_can_be_read_without_its_neighbours() {
    let house = House::new();
    let flags = ["--read", "@in/clip"];
    assert_eq!(house.child(&flags, &["read", "@in/clip"]), ALLOWED);
    assert_eq!(house.child(&flags, &["read", "@in/other"]), EACCES);
    assert_eq!(house.child(&flags, &["list", "@in"]), EACCES);
    assert_eq!(house.child(&flags, &["write", "@in/clip"]), EACCES);
    // An allowed link is what it leads to.
    assert_eq!(
        house.child(&["--read", "@in/link"], &["read", "@secret"]),
        ALLOWED
    );
}

fn other_processes_are_closed() {
    let house = House::new();
    // Root only may read it; the tests are at home in containers, whose user is root.
    if fs::read("/proc/1/environ").is_ok() {
        house.expect(&["read", "/proc/1/environ"], EACCES);
    } else {
        assert_eq!(house.child(&[], &["read", "/proc/1/environ"]), EACCES);
    }
    let parent = std::process::id().to_string();
    house.expect(&["read", &format!("/proc/{parent}/environ")], EACCES);
    house.expect(&["call", &libc::SYS_kill.to_string(), &parent, "0"], EPERM);
    house.expect(
        &[
            "call",
            &libc::SYS_process_vm_readv.to_string(),
            &parent,
            "0",
            "0",
            "0",
            "0",
        ],
        EPERM,
    );
}

fn writes_inside_the_folder_only() {
    let house = House::new();
    house.expect(&["write", "@out/new"], ALLOWED);
    house.expect(&["write", "@out/old"], ALLOWED);
    house.expect(&["part", "@out/part", "@out/old"], ALLOWED);
    house.expect(&["folder", "@out/made"], ALLOWED);
    house.expect(&["own-modes", "@out/new"], ALLOWED);
    house.expect(&["hard-link", "@out/old", "@out/again"], ALLOWED);
    house.expect(&["remove", "@out/old"], ALLOWED);

    house.expect(&["write", "@elsewhere/new"], EACCES);
    house.expect(&["write", "@elsewhere/file"], EACCES);
    house.expect(&["write", "@in/clip"], EACCES);
    house.expect(&["write", "@in/link"], EACCES);
    house.expect(&["folder", "@in/made"], EACCES);
    house.expect(&["remove", "@elsewhere/file"], EACCES);
    house.expect(&["link", "/etc/passwd", "@out/link"], EACCES);
    house.expect(&["listen", "@out/socket"], EPERM);
    assert_eq!(fs::read_to_string(house.path("secret")).unwrap(), "text");
    assert_eq!(fs::read_to_string(house.path("elsewhere/file")).unwrap(), "text");
}

fn nothing_is_moved_in_or_out() {
    let moves = [
        ["rename", "@out/old", "@elsewhere/old"],
        ["rename", "@elsewhere/file", "@out/file"],
        ["hard-link", "@secret", "@out/mine"],
        ["hard-link", "@in/clip", "@out/mine"],
    ];
    for action in moves {
        let house = House::new();
        let said = house.child(&["--read", "@in", "--write", "@out"], &action);
        assert!(said == EACCES || said == EXDEV, "{action:?}: {said}");
    }
}

fn files_outside_are_not_emptied_and_keep_their_modes() {
    let house = House::new();
    house.expect(&["empty", "@in/clip"], EPERM);
    house.expect(&["empty", "@secret"], EPERM);
    house.expect(&["modes", "@secret"], EPERM);
    // Allowed in Landlock's eyes, so it is the filter that refuses: older kernels are covered too.
    house.expect(&["empty", "@out/old"], EPERM);
    house.expect(&["modes", "@out/old"], EPERM);
}

fn the_network_is_closed() {
    let house = House::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp_at, udp_at) = (
        tcp.local_addr().unwrap().to_string(),
        udp.local_addr().unwrap().to_string(),
    );
    house.expect(&["tcp", &tcp_at], EPERM);
    house.expect(&["udp", &udp_at], EPERM);
    let netlink = [
        "call",
        &libc::SYS_socket.to_string(),
        &libc::AF_NETLINK.to_string(),
        "3",
        "0",
    ];
    house.expect(&netlink, EPERM);
    for action in [&["tcp", &tcp_at][..], &["udp", &udp_at], &netlink] {
        assert_eq!(house.child(&["--devices"], action), EPERM, "{action:?}");
    }
}

fn unix_sockets_are_for_the_cuda_driver_only() {
    let house = House::new();
    let _listener = UnixListener::bind(house.path("service")).unwrap();
    assert_eq!(house.child(&[], &["unix", "@service"]), EPERM);
    assert_eq!(house.child(&["--open"], &["unix", "@service"]), ALLOWED);
    assert_eq!(house.child(&["--devices"], &["unix", "@service"]), ALLOWED);
    house.expect(&["pair"], ALLOWED);
}

fn threads_are_named_through_files_by_the_cuda_driver_only() {
    let house = House::new();
    house.expect(&["name-thread"], EACCES);
    assert_eq!(house.child(&["--devices"], &["name-thread"]), ALLOWED);
}

fn no_other_program_runs() {
    let house = House::new();
    house.expect(&["run", "/bin/true"], EPERM);
    assert_eq!(
        house.child(&["--devices", "--read", "/usr/bin"], &["run", "/bin/true"]),
        EPERM
    );
}

fn ways_round_are_closed() {
    let house = House::new();
    let eperm = |number: libc::c_long, values: &[&str]| {
        let number = number.to_string();
        let action = [&["call", &number][..], values].concat();
        assert_eq!(house.child(&[], &action), EPERM, "{action:?}");
        assert_ne!(
            house.child(&["--open"], &action),
            EPERM,
            "{action:?} without a sandbox"
        );
    };
    eperm(libc::SYS_io_uring_setup, &["0", "0"]);
    eperm(libc::SYS_openat2, &["-100", "0", "0", "0"]);
    eperm(libc::SYS_truncate, &["0", "0"]);
    eperm(libc::SYS_prlimit64, &["1", "7", "0", "0"]);
    eperm(libc::SYS_utimensat, &["-100", "1", "0", "0"]);
    eperm(libc::SYS_ioctl, &["0", "21522", "0"]);
    // The upper half of the register is ignored by the kernel, and must be by the filter.
    #[cfg(target_arch = "x86_64")]
    {
        eperm(libc::SYS_socket | 0x4000_0000, &["2", "1", "0"]);
        eperm(545 + 0x4000_0000, &["0", "0", "0", "0", "0"]);
        let family = (1_i64 << 32 | 2).to_string();
        assert_eq!(
            house.child(&["--devices"], &["call", "41", &family, "1", "0"]),
            EPERM
        );
        assert_eq!(
            house.child(&["--open"], &["call", "41", &family, "1", "0"]),
            ALLOWED
        );
    }
}

fn ordinary_work_goes_on() {
    let house = House::new();
    house.expect(&["ordinary"], ALLOWED);
    assert_eq!(house.child(&["--devices"], &["ordinary"]), ALLOWED);
}

fn a_second_thread_is_refused() {
    let said = House::new().child(&["--busy"], &["ordinary"]);
    assert!(
        said.starts_with("no sandbox: the program has 2 threads already"),
        "{said}"
    );
}

fn a_missing_path_is_named() {
    let said = House::new().child(&["--read", "@nowhere"], &["ordinary"]);
    assert!(
        said.starts_with("no sandbox: cannot allow /") && said.contains("nowhere"),
        "{said}"
    );
    assert!(said.contains("No such file"), "{said}");
}

fn a_kernel_without_landlock_is_named() {
    let house = House::new();
    for (errno, text) in [
        (libc::ENOSYS, "the kernel has no Landlock"),
        (libc::EOPNOTSUPP, "not enabled at boot"),
    ] {
        let said = house.child(&["--hide", &errno.to_string()], &["ordinary"]);
        assert!(
            said.contains("this system cannot confine the program") && said.contains(text),
            "{said}"
        );
    }
}
