//! C interfaces found in shared libraries at run time: a table of functions by name and signature.

/// Declares `Api`, a struct with a pointer to each function, and how it is loaded.
///
/// `c_api! { NAME, "prefix_"; destroy(*mut c_void); count(*mut c_void) -> usize; }`: `NAME` is the
/// store's name for errors. The signatures are the caller's word; they must be those of the
/// library's header.
macro_rules! c_api {
    ($store:expr, $prefix:literal; $($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions, by their names without the prefix.
        pub(super) struct Api {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// Never unloaded: these libraries leave threads and destructors behind that live in
            /// them.
            _library: std::mem::ManuallyDrop<libloading::Library>,
        }

        impl Api {
            /// Loads a shared library, by its path or by a name that the system's loader knows, and
            /// finds all functions in it.
            pub(super) fn load(library: &std::ffi::OsStr) -> crate::error::Result<std::sync::Arc<Api>> {
                let fail = |error: libloading::Error| crate::error::Error::engine($store, error);
                // SAFETY: loading runs the library's initialisers; it is the store's library that
                // the user installed.
                let library = unsafe { libloading::Library::new(library) }.map_err(fail)?;
                $(
                    // SAFETY: the type is that of the function of this name in the library's
                    // header.
                    let $name = *unsafe {
                        library.get::<unsafe extern "C" fn($($argument),*) $(-> $result)?>(
                            concat!($prefix, stringify!($name), "\0").as_bytes(),
                        )
                    }
                    .map_err(fail)?;
                )*
                let _library = std::mem::ManuallyDrop::new(library);
                Ok(std::sync::Arc::new(Api { $($name,)* _library }))
            }
        }

        impl std::fmt::Debug for Api {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("Api")
            }
        }
    };
}

/// Adds to an `Api` with a function `free` how errors are told that calls leave as text of the
/// library's own.
macro_rules! c_errors {
    ($store:expr) => {
        impl Api {
            /// Takes the message that a call left in `error`, if it failed.
            #[inline]
            pub(super) fn check(&self, error: *mut std::ffi::c_char) -> crate::error::Result<()> {
                if error.is_null() {
                    return Ok(());
                }
                Err(self.failure(error))
            }

            #[cold]
            fn failure(&self, error: *mut std::ffi::c_char) -> crate::error::Error {
                // SAFETY: errors are zero-terminated strings that the caller owns.
                let message = unsafe { std::ffi::CStr::from_ptr(error) }.to_string_lossy().into_owned();
                // SAFETY: allocated by the library, freed once, not used after.
                unsafe { (self.free)(error.cast()) };
                crate::error::Error::engine($store, message)
            }
        }
    };
}

pub(super) use {c_api, c_errors};
