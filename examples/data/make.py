#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Makes the data of the examples and, in expected/, what each must give: computed here with dense
# NumPy arrays, by index formulas that know nothing of axes.  Run it in this folder; the files it
# writes are committed, so neither the examples nor their tests need Python.
import itertools
import os

import numpy as np

rng = np.random.default_rng(7)


def ints(*shape):
    """Small integers without 0: sums of their products are exact in every floating-point type."""
    return rng.choice([-3, -2, -1, 1, 2, 3, 4], size=shape).astype(float)


def expect(program, **arrays):
    for name, a in arrays.items():
        np.save(f"expected/{program}.{name.replace('__', '.')}.npy", np.asarray(a, order="C"))


def write_mtx(path, a, comment):
    rows, cols = np.nonzero(a)
    with open(path, "w") as f:
        f.write("%%MatrixMarket matrix coordinate real general\n")
        f.write(f"% {comment}\n{a.shape[0]} {a.shape[1]} {len(rows)}\n")
        for i, j in zip(rows, cols):
            f.write(f"{i + 1} {j + 1} {a[i, j]:g}\n")


def starts(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def csr(mask):
    """Starts and columns of a 0/1 matrix."""
    return starts(mask.sum(1)), np.nonzero(mask)[1].astype(np.int64)


os.makedirs("expected", exist_ok=True)

# matrices: 6 x 7 with an empty row, the same for most formats
m, n, f = 6, 7, 4
mask = np.array([[1, 0, 0, 1, 0, 0, 1],
                 [0, 1, 0, 0, 0, 0, 0],
                 [1, 1, 0, 1, 1, 0, 1],
                 [0, 0, 0, 0, 0, 0, 0],
                 [0, 0, 1, 0, 0, 1, 0],
                 [1, 0, 0, 0, 0, 0, 1]])
A = mask * ints(m, n)
B, P, x = ints(n, f), ints(m, f), ints(n)
write_mtx("a.mtx", A, "6 x 7, 13 entries, row 4 is empty")
np.save("b.npy", B)
np.save("p.npy", P)
np.save("x.npy", x)
expect("spmm", C=(A @ B).astype(np.float32))
expect("spmm_edges", C=(A @ B).astype(np.float32))
expect("spmm_csc", C=A @ B)
expect("sddmm", Y=(A * (P @ B.T))[mask == 1].astype(np.float32))
expect("spmv_coo2", Y=A @ x)
expect("spmv_dcsr", Y=A @ x)
expect("spmv_ell", Y=A @ x)

# COO: shuffled, two entries twice
i, j = np.nonzero(mask)
i, j = np.append(i, [2, 5]), np.append(j, [3, 0])
order = rng.permutation(len(i))
i, j, v = i[order], j[order], ints(len(i))
np.savez("coo.npz", **{"E.i": i, "E.j": j, "A": v})
dense = np.zeros((m, n))
for k in range(len(v)):
    dense[i[k], j[k]] += v[k]
expect("spmv_coo", Y=dense @ x)

# band and DIA: NaN where a diagonal leaves the matrix
band, dense = np.full((m, 5), np.nan), np.zeros((m, n))
for i, b in itertools.product(range(m), range(5)):
    if 0 <= i + b - 2 < n:
        dense[i, i + b - 2] = band[i, b] = ints()
np.savez("band.npz", A=band)
expect("spmv_band", Y=dense @ x)

off, dense = np.array([-4, 0, 3]), np.zeros((m, n))
dia = np.full((3, m), np.nan)
for d, i in itertools.product(range(3), range(m)):
    if 0 <= i + off[d] < n:
        dense[i, i + off[d]] = dia[d, i] = ints()
np.savez("dia.npz", **{"D.off": off.astype(np.int32), "A": dia})
expect("spmv_dia", Y=dense @ x)

# BSR: 3 x 4 blocks of 2 x 2, an empty block row
blocks = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 1, 1]])
start, coord = csr(blocks)
a, X, vec = ints(len(coord), 2, 2), ints(4, 2, f), ints(8)
np.savez_compressed("bsr.npz", **{"JB.start": start, "JB.coord": coord, "A": a, "X": X, "x": vec})
dense = np.zeros((3, 2, 4, 2))
for k, (i, j) in enumerate(np.argwhere(blocks)):
    dense[i, :, j, :] = a[k]
dense = dense.reshape(6, 8)
expect("spmm_bsr", Y=(dense @ X.reshape(8, f)).reshape(3, 2, f))
expect("spmv_bsr_rows", Y=dense @ vec)

# 2:4
ng = 2
o = np.array([[rng.permutation(4)[:2] for _ in range(ng)] for _ in range(4)])
a, b = ints(4, ng, 2), ints(4 * ng, f)
np.savez("nm.npz", **{"L.o": o.astype(np.int32), "A": a, "B": b})
dense = np.zeros((4, 4 * ng))
for i, g, s in itertools.product(range(4), range(ng), range(2)):
    dense[i, 4 * g + o[i, g, s]] += a[i, g, s]
expect("spmm_nm", C=dense @ b)

# SR-BCRS: strips of 2 rows; the columns that a strip needs, in groups of 3
count, cols, tiles = [], [], []
for s in range(0, m, 2):
    need = np.nonzero(mask[s] | mask[s + 1])[0]
    groups = [need[k:k + 3] for k in range(0, len(need), 3)]
    count.append(len(groups))
    for g in groups:
        tile = np.full((2, 3), np.nan)
        tile[:, :len(g)] = A[s:s + 2, g]
        tiles.append(tile)
        cols.append(np.append(g, [-1] * (3 - len(g))))
np.savez("srbcrs.npz", **{"G.start": starts(count), "C.j": np.array(cols), "A": np.array(tiles)})
expect("spmm_srbcrs", Y=(A @ B).reshape(m // 2, 2, f))

# SELL-2-sigma: rows by falling length, slices of two
length = mask.sum(1)
rows = np.argsort(-length, kind="stable")
count, cols, vals = [], [], []
for s in range(0, m, 2):
    pair = rows[s:s + 2]
    count.append(length[pair].max())
    for w in range(count[-1]):
        for r in pair:
            at = np.nonzero(mask[r])[0]
            cols.append(at[w] if w < len(at) else n)
            vals.append(A[r, at[w]] if w < len(at) else np.nan)
np.savez("sell.npz", **{"W.start": starts(count), "L.j": np.array(cols).reshape(-1, 2),
                        "A": np.array(vals).reshape(-1, 2), "row": rows.reshape(-1, 2)})
expect("spmv_sell", Y=A @ x)

# hyb: rows of one or two entries in bucket 1, others in bucket 2, cut to width 4
buckets, position = {2: [], 4: []}, {}
for p, (i, j) in enumerate(np.argwhere(mask)):
    position[i, j] = p
for i in range(m):
    at, width = np.nonzero(mask[i])[0], 2 if mask[i].sum() <= 2 else 4
    for k in range(0, len(at), width):
        buckets[width].append((i, list(at[k:k + width]) + [-1] * (width - len(at[k:k + width]))))
data = {"A": A[mask == 1]}
for number, width in ((1, 2), (2, 4)):
    data[f"R{number}.i"] = np.array([i for i, _ in buckets[width]])
    data[f"L{number}.j"] = np.array([at for _, at in buckets[width]])
    data[f"P{number}"] = np.array([[position.get((i, j), -1) for j in at]
                                   for i, at in buckets[width]])
np.savez("hyb.npz", **data)
expect("spmm_hyb", C=A @ B)

# two sparse matrices
mask_b = (rng.random((m, n)) < 0.35).astype(int)
mask_b[3, 2] = mask_b[0, 3] = mask_b[2, 1] = 1
b_mtx = mask_b * ints(m, n)
write_mtx("b.mtx", b_mtx, "6 x 7, for intersection and union with a.mtx")
both, either = mask & mask_b, mask | mask_b
start, coord = csr(both)
expect("intersection", U__start=start, U__coord=coord, C=(A * b_mtx)[both == 1])
start, coord = csr(either)
filled = np.maximum(np.where(mask, A, -1), np.where(mask_b, b_mtx, -1))
expect("union", U__start=start, U__coord=coord, C=filled[either == 1])

mask_c = (rng.random((n, 5)) < 0.4).astype(int)
c_mtx = mask_c * ints(n, 5)
write_mtx("c.mtx", c_mtx, "7 x 5, the right factor of SpGEMM")
reach = (mask @ mask_c) > 0
start, coord = csr(reach)
expect("spgemm", U__start=start, U__coord=coord, C=(A @ c_mtx)[reach])

# CSF: 3 x 4 x 5
mask_t = rng.random((3, 4, 5)) < 0.3
mask_t[1] = False
t = mask_t * ints(3, 4, 5)
fibre = mask_t.any(2)
j_start, j_coord = csr(fibre)
k_start, k_coord = csr(mask_t[fibre])
b, c = ints(4, 3), ints(5, 3)
np.savez("csf.npz", **{"J.start": j_start, "J.coord": j_coord, "K.start": k_start,
                       "K.coord": k_coord, "T": t[mask_t], "B": b, "C": c})
expect("mttkrp_csf", Y=np.einsum("ijk,jr,kr->ir", t, b, c))

# ragged: segments of 3, 1, 0 and 4
start = starts([3, 1, 0, 4])
X = ints(8, 3)
X[5] = X[4]
np.savez("ragged.npz", **{"E.start": start, "X": X})
total, mean, most, where = (np.zeros((4, 3)) for _ in range(4))
where -= 1
for g, k in itertools.product(range(4), range(3)):
    part = X[start[g]:start[g + 1], k]
    total[g, k], mean[g, k] = part.sum(), part.sum() / max(len(part), 1)
    if len(part):
        most[g, k], where[g, k] = part.max(), start[g] + part.argmax()
expect("segment_sum", S=total, M=mean)
expect("segment_max", M=most, W=where.astype(np.int64))

# relations
nr, nodes, ci, co = 3, 5, 2, 3
adj = (rng.random((nr, nodes, nodes)) < 0.3).astype(int)
start, coord = csr(adj.reshape(nr * nodes, nodes))
dense = adj * ints(nr, nodes, nodes)
X, W = ints(nodes, ci), ints(nr, ci, co)
np.savez("rgms.npz", **{"J.start": start, "J.coord": coord, "A": dense[adj == 1], "X": X, "W": W})
expect("rgms", Y=np.einsum("rij,jc,rco->io", dense, X, W))

# submanifold convolution on 9 voxels of a 4 x 4 x 4 grid
voxels = sorted(map(tuple, rng.permutation(np.argwhere(np.ones((4, 4, 4))))[:9]))
number = {v: k for k, v in enumerate(voxels)}
X, W = ints(9, ci), ints(3, 3, 3, ci, co)
count, pair = [], []
for d in itertools.product((-1, 0, 1), repeat=3):
    here = [(number[tuple(np.add(v, d))], number[v]) for v in voxels
            if tuple(np.add(v, d)) in number]
    count.append(len(here))
    pair += here
np.savez("conv3d.npz", **{"E.start": starts(count), "E.a": np.array(pair)[:, 0],
                          "E.b": np.array(pair)[:, 1], "X": X, "W": W.reshape(27, ci, co)})
grid = np.zeros((6, 6, 6, ci))  # with a border of zeros
for v in voxels:
    grid[v[0] + 1, v[1] + 1, v[2] + 1] = X[number[v]]
out = np.array([np.einsum("xyzc,xyzco->o", grid[a:a + 3, b:b + 3, c:c + 3], W)
                for a, b, c in voxels])
expect("conv3d", Y=out)

# attention: node 4 has no edges
adj = rng.random((6, 6)) < 0.5
adj[4] = False
start, coord = csr(adj)
L, R, X = rng.normal(size=(6, 2)), rng.normal(size=(6, 2)), rng.normal(size=(6, 2, 3))
np.savez("graph.npz", **{"E.start": start, "E.j": coord, "L": L, "R": R, "X": X})
s = L[:, None, :] + R[None, :, :]
s = np.where(adj[:, :, None], np.exp(np.where(s > 0, s, 0.2 * s)), 0)
weight = s / np.maximum(s.sum(1, keepdims=True), 1e-300)
expect("attention", O=np.einsum("ijh,jhk->ihk", weight, X))

# tensor products: closed forms.  A vector's components are numbered 0, 1, 2 = y, z, x
def degree0(x, y):
    return (x * y).sum(-1, keepdims=True) / np.sqrt(3)


def degree1(x, y):
    return np.cross(x, y) / np.sqrt(2)


def degree2(x, y):
    (a0, a1, a2), (b0, b1, b2) = np.moveaxis(x, -1, 0), np.moveaxis(y, -1, 0)
    return np.stack([(a0 * b2 + a2 * b0) / np.sqrt(2), (a0 * b1 + a1 * b0) / np.sqrt(2),
                     (2 * a1 * b1 - a0 * b0 - a2 * b2) / np.sqrt(6),
                     (a1 * b2 + a2 * b1) / np.sqrt(2), (a2 * b2 - a0 * b0) / np.sqrt(2)], -1)


X, Y = rng.normal(size=(4, 3, 2)), rng.normal(size=(4, 3, 2))
np.savez("tp_112.npz", X=X, Y=Y)
xt, yt = X.swapaxes(1, 2), Y.swapaxes(1, 2)  # components last
z = np.concatenate([degree0(xt, yt), degree1(xt, yt), degree2(xt, yt)], -1)
expect("tp_112", Z=z.swapaxes(1, 2))


def split(a, irreps, components_first):
    """Slots (multiplicity, components) of the last axis, as arrays [..., channel, component]."""
    out, at = [], 0
    for mul, dim in irreps:
        part = a[..., at:at + mul * dim]
        shape = (dim, mul) if components_first else (mul, dim)
        part = part.reshape(a.shape[:-1] + shape)
        out.append(part.swapaxes(-1, -2) if components_first else part)
        at += mul * dim
    return out


def join(slots, components_first):
    slots = [s.swapaxes(-1, -2) if components_first else s for s in slots]
    return np.concatenate([s.reshape(s.shape[:-2] + (-1,)) for s in slots], -1)


def paths(x, y):
    """The five products of (scalars, vectors) with (scalars, vectors), channels u and v apart."""
    (xs, xv), (ys, yv) = [a[..., :, None, :] for a in x], [a[..., None, :, :] for a in y]
    return [xs * ys, degree0(xv, yv), xs * yv, xv * ys, degree1(xv, yv)]


def weigh(products, wt, multiplicities):
    """Mode uvu: weights in the order path, u, v."""
    out, at = [], 0
    for p, (u, v) in zip(products, multiplicities):
        w = wt[..., at:at + u * v].reshape(wt.shape[:-1] + (u, v, 1))
        out.append((w * p).sum(-2))
        at += u * v
    return out


in1, in2 = [(4, 1), (2, 3)], [(1, 1), (1, 3)]
uv = [(4, 1), (2, 1), (4, 1), (2, 1), (2, 1)]
nb = 3
X, Y, Wt = rng.normal(size=(nb, 10)), rng.normal(size=(nb, 4)), rng.normal(size=(nb, 14))
slots = weigh(paths(split(X, in1, True), split(Y, in2, True)), Wt, uv)
expect("tp_uvu", Z=join(slots, True))
expect("tp_mul_ir", Z=join(slots, False))
Y_uvw, Wt_uvw = rng.normal(size=(nb, 11)), rng.normal(size=16 + 18 + 12 + 8 + 24)
data = {"X": X, "Y": Y, "Wt": Wt, "X_mul_ir": join(split(X, in1, True), False),
        "Y_mul_ir": join(split(Y, in2, True), False), "Y_uvw": Y_uvw, "Wt_uvw": Wt_uvw}
np.savez("tp.npz", **data)
slots, at = [], 0
products = paths(split(X, in1, True), split(Y_uvw, [(2, 1), (3, 3)], True))
for p, w in zip(products, (2, 3, 1, 2, 4)):
    u, v = p.shape[1:3]
    wt = Wt_uvw[at:at + u * v * w].reshape(u, v, w)
    slots.append(np.einsum("buvm,uvw->bwm", p, wt))
    at += u * v * w
expect("tp_uvw", Z=join(slots, True))

# equivariant convolution: 5 nodes, one of them without edges
nodes, hidden = 5, 3
adj = rng.random((nodes, nodes)) < 0.6
np.fill_diagonal(adj, False)
adj[2] = False
start, coord = csr(adj)
edges = len(coord)
X, Y = rng.normal(size=(nodes, 10)), rng.normal(size=(edges, 4))
Wt, hid, last = (rng.normal(size=(edges, 14)), rng.normal(size=(edges, hidden)),
                 rng.normal(size=(hidden, 14)))
np.savez("conv.npz", **{"E.start": start, "E.j": coord, "X": X, "Y": Y, "Wt": Wt, "A": hid,
                        "R": last})


def convolve(x, y, wt):
    z = np.zeros((nodes, 30))
    for e, (i, j) in enumerate(np.argwhere(adj)):
        z[i] += join(weigh(paths(split(x[j], in1, True), split(y[e], in2, True)), wt[e], uv), True)
    return z


Z = convolve(X, Y, Wt)
expect("conv_equivariant", Z=Z)
expect("conv_weights", Z=convolve(X, Y, hid @ last))

# the same under a rotation with a reflection: scalars stay, 1o changes sign with it, 1e not
R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
R *= np.linalg.det(R)
one, odd, even = np.eye(1), -R, R
np.savez("rotation.npz", DX=np.concatenate([one.ravel(), odd.ravel()]),
         DY=np.concatenate([one.ravel(), odd.ravel()]),
         DZ=np.concatenate([d.ravel() for d in (one, one, odd, odd, even)]))


def rotate(a, irreps, d):
    return join([s @ m.T for s, m in zip(split(a, irreps, True), d)], True)


RX, RY = rotate(X, in1, (one, odd)), rotate(Y, in2, (one, odd))
RZ = rotate(Z, [(4, 1), (2, 1), (4, 3), (2, 3), (2, 3)], (one, one, odd, odd, even))
assert abs(convolve(RX, RY, Wt) - RZ).max() < 1e-14 * abs(RZ).max()
expect("rotate", RX=RX, RY=RY, RZ=RZ)
far, large = abs(Z - RZ).max(), max(abs(Z).max(), abs(RZ).max())
expect("difference", far=far, large=large, relative=far / large)

# symmetric contraction
nb, elements, mul = 4, 2, 3
X, el, W = rng.normal(size=(nb, 4, mul)), np.array([0, 1, 1, 0]), rng.normal(size=(elements, 4, mul))
np.savez("symmetric.npz", X=X, el=el, W=W)
s, v, w = X[:, :1], X[:, 1:], W[el]
vv = (v * v).sum(1, keepdims=True) / np.sqrt(3)
scalar = w[:, 0:1] * s * s * s + w[:, 1:2] * s * vv
vector = w[:, 2:3] * s * s * v + w[:, 3:4] * v * vv
expect("symmetric_contraction", Z=np.concatenate([scalar, vector], 1))

# a club of 18 that falls into two groups of 9: dense inside, three friendships across
size, club = 9, np.zeros((18, 18), int)
for g in (0, size):
    for a in range(1, size):
        friends = {0} if rng.random() < 0.6 else set()
        friends |= set(rng.choice([k for k in range(1, size) if k != a], 2, replace=False))
        for b in friends:
            club[g + a, g + b] = club[g + b, g + a] = 1
for a, b in ((3, 12), (5, 16), (7, 10)):
    club[a, b] = club[b, a] = 1
with open("club.mtx", "w") as out:
    below = np.argwhere(np.tril(club))
    out.write("%%MatrixMarket matrix coordinate pattern symmetric\n% who knows whom: two groups\n")
    out.write(f"18 18 {len(below)}\n" + "".join(f"{i + 1} {j + 1}\n" for i, j in below))
pin, opinion = np.zeros(18), np.zeros(18)
pin[[0, size]], opinion[0], opinion[size] = 1, 1, -1
np.savez("club.npz", pin=pin, X=opinion)
step = np.where(pin > 0, opinion, (club @ opinion) / club.sum(1))
expect("neighbour_mean", Y=step)
# where it ends: the leaders are given, everyone else is the mean of their neighbours
laplace, rest = np.diag(club.sum(1)) - club, pin == 0
end = opinion.copy()
end[rest] = np.linalg.solve(laplace[np.ix_(rest, rest)], club[np.ix_(rest, ~rest)] @ opinion[~rest])
assert (np.sign(end) == np.repeat([1, -1], size)).all()
np.save("club_end.npy", end)
