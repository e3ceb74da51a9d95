//! A whole file as bytes: mapped by the kernel, or held on the heap.
