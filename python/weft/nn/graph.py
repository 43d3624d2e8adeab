# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Layers of graph networks, with the arguments, the parameters and the names of PyTorch Geometric's, so that
state dicts load both ways; torch_geometric itself is not needed.  edge_index is (2, edges), senders then
receivers, a weft.Graph, or a sparse tensor, rows of receivers.  docs/graphs.md."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor
from torch.nn import Module, Parameter, functional
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import UninitializedParameter

from .. import _check, _edges, _message, _torch_edges
from .._graph import Graph
from .._lib import ArgumentError
from .._sparse import bad, describe
from .._torch_ad import is_traced
from .._torch_large import linear as apply_linear

__all__ = ["GATConv", "GATv2Conv", "GCNConv", "RGCNConv", "SAGEConv"]

Features = Union[Tensor, Tuple[Tensor, Optional[Tensor]]]
_REDUCES = {"add": "sum", "sum": "sum", "mean": "mean", "max": "max", "min": "min"}


def glorot(x: Optional[Tensor]) -> None:
    if x is not None:
        most = math.sqrt(6 / (x.size(-2) + x.size(-1)))
        torch.nn.init.uniform_(x, -most, most)


def zeros(x: Optional[Tensor]) -> None:
    if x is not None:
        torch.nn.init.zeros_(x)


class _Linear(torch.nn.Linear):
    """init: how weights begin; None: as those of torch do."""

    def __init__(self, channels: int, out_channels: int, bias: bool = True, init: Any = None):
        self._init = init
        super().__init__(channels, out_channels, bias)

    def forward(self, x: Tensor) -> Tensor:
        return apply_linear(x, self.weight, self.bias)

    def reset_parameters(self) -> None:
        if self._init is None:
            super().reset_parameters()
            return
        self._init(self.weight)
        zeros(self.bias)


class _LazyLinear(LazyModuleMixin, _Linear):
    """The number of channels is that of the first input."""

    cls_to_become = _Linear

    def __init__(self, out_channels: int, bias: bool, init: Any):
        super().__init__(0, 0, False, init)
        self.weight = UninitializedParameter()
        self.out_features = out_channels
        self.bias = Parameter(torch.zeros(out_channels)) if bias else None

    def reset_parameters(self) -> None:
        if self.in_features:
            super().reset_parameters()

    def initialize_parameters(self, x: Tensor) -> None:
        if self.has_uninitialized_params():
            with torch.no_grad():
                self.in_features = x.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                self.reset_parameters()


def linear(channels: int, out_channels: int, bias: bool = True, init: Any = None) -> _Linear:
    return _LazyLinear(out_channels, bias, init) if channels == -1 else _Linear(channels, out_channels, bias, init)


def _is_plain(*tensors: Tensor) -> bool:
    """Whether torch allows writing one of them from the others: of one type, no transform of functions, no trace."""
    if is_traced():
        return False
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    return all(x.dtype == tensors[0].dtype and not wrapped(x) for x in tensors)


def _add(out: Tensor, more: Optional[Tensor]) -> Tensor:
    """out + more, in the memory of out, which nobody else has."""
    if more is None:
        return out
    return out.add_(more) if _is_plain(out, more) else out + more


def _add_product(out: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """out + a b, likewise."""
    return out.addmm_(a, b) if out.dim() == 2 and _is_plain(out, a, b) else out + a @ b


def check_counts(in_channels: Any, **others: Any) -> None:
    """in_channels: a number or a pair of them, -1 for that of the first input."""
    for n in in_channels if isinstance(in_channels, (tuple, list)) else [in_channels]:
        _check.integer("in_channels", n, -1)
    for name, n in others.items():
        _check.size(name, n)


def _rows_of_tensor(name: str, x: Any, what: str) -> None:
    """A dense tensor on the CPU of two dimensions or more."""
    if not isinstance(x, Tensor) or x.dim() < 2:
        raise bad(name, what, describe(x))
    if x.layout is not torch.strided or (x.device.type != "cpu" and not is_traced()):
        raise bad(name, "a dense tensor on the CPU", f"{x.layout} on {x.device}")


def _check_features(name: str, x: Any, channels: int, weight: Tensor, plain: bool = False) -> None:
    """channels: how many there are to be, -1 if any number; weight: of the layer; plain: without a batch."""
    what = "a floating-point tensor (nodes, channels)"
    _rows_of_tensor(name, x, what)
    if not x.is_floating_point() or (plain and x.dim() != 2):
        raise bad(name, what, describe(x))
    if x.dtype != weight.dtype and not torch.is_autocast_enabled("cpu"):
        raise bad(name, f"elements of {weight.dtype}, as the layer's weights have", describe(x))
    if channels > 0 and x.shape[-1] != channels:
        raise bad(name, f"{channels} channels", describe(x))


def _check_all(x: Any, channels: Any, weight: Tensor, plain: bool = False) -> None:
    """Features of nodes, or a pair, of senders and of receivers; those of receivers may be None."""
    if isinstance(x, Tensor) or not isinstance(x, (tuple, list)):
        _check_features("x", x, channels if isinstance(channels, int) else channels[0], weight, plain)
        return
    if len(x) != 2:
        raise bad("x", "a tensor, or a pair of them, of senders and of receivers", f"{len(x)} of them")
    for k, each in enumerate(x):
        if k == 0 or each is not None:
            n = channels if isinstance(channels, int) else channels[k]
            _check_features(f"x[{k}]", each, n, weight, plain)


def _check_of_edges(name: str, x: Any, edges: "_Edges", columns: int = 0, weight: Optional[Tensor] = None) -> None:
    """columns: 0: one value an edge.  weight: what x is multiplied by, of the layer."""
    what = "a floating-point tensor (edges)" if columns == 0 else f"a floating-point tensor (edges, {columns})"
    if x is None:
        return
    if not isinstance(x, Tensor) or x.layout is not torch.strided or not x.is_floating_point():
        raise bad(name, what, describe(x))
    if weight is not None and x.dtype != weight.dtype and not torch.is_autocast_enabled("cpu"):
        raise bad(name, f"elements of {weight.dtype}, as the layer's weights have", describe(x))
    if is_traced():
        return
    n = edges.index.num_edges if isinstance(edges.index, Graph) else edges.index.shape[1]
    if columns < 0:  # as many as the first input has
        columns = x.shape[-1] if x.dim() > 1 else 1
    shape = (n,) if columns == 0 or (columns == 1 and x.dim() == 1) else (n, columns)
    if x.device.type != "cpu" or tuple(x.shape) != shape:
        raise bad(name, f"a tensor on the CPU of shape {shape}, as there are {n} edges", describe(x))


class _Edges:
    """The edges of a call, and their weights where they are a matrix."""

    def __init__(self, edge_index: Any, flow: str):
        self.weight: Optional[Tensor] = None
        self.matrix = False
        if isinstance(edge_index, Tensor) and edge_index.layout is not torch.strided:
            edge_index, self.weight = _list_of(edge_index)
            self.matrix = True
        elif not isinstance(edge_index, (Tensor, Graph)):
            raise bad("edge_index", "a tensor (2, edges), a weft.Graph or a sparse tensor", describe(edge_index))
        if isinstance(edge_index, Tensor) and flow == "target_to_source" and not self.matrix:
            edge_index = edge_index.flip(0)
        if isinstance(edge_index, Graph):
            self.weight = edge_index.data
        elif edge_index.dim() != 2 or edge_index.shape[0] != 2 or edge_index.dtype not in (torch.int64, torch.int32):
            raise bad("edge_index", "int32 or int64 of shape (2, edges)", describe(edge_index))
        elif edge_index.device.type != "cpu" and not is_traced():
            raise bad("edge_index", "a tensor on the CPU", edge_index.device)
        self.index = edge_index

    def rows(self, receivers: int, senders: int, loops: int = 0) -> _edges.Rows:
        return _edges.rows(self.index, receivers, senders, loops, torch=True)

    def with_loops(self, n: int, weight: Optional[Tensor], fill: float) -> Tuple["_Edges", Optional[Tensor]]:
        """With an edge from each node to itself more."""
        index = self.tensor()
        nodes = torch.arange(n, dtype=index.dtype)
        out = _Edges(torch.cat([index, nodes.expand(2, n)], 1), "source_to_target")
        return out, None if weight is None else torch.cat([weight, weight.new_full((n,), fill)])

    def tensor(self) -> Tensor:
        return _torch_edges.index_of(self.index).long() if isinstance(self.index, Graph) else self.index


def _list_of(A: Tensor) -> Tuple[Tensor, Tensor]:
    """A sparse matrix of receivers and senders as a list of edges."""
    if A.layout is torch.sparse_coo:
        A = A.coalesce()
        return A.indices().flip(0), A.values()
    if A.layout is torch.sparse_csr:
        start, col = A.crow_indices(), A.col_indices()
        rows = torch.repeat_interleave(torch.arange(A.shape[0]), start.diff(), output_size=col.shape[0])
        return torch.stack([col, rows]), A.values()
    raise bad("edge_index", "a sparse tensor in COO or CSR", A.layout)


class _Conv(Module):
    """What layers share: the arguments of MessagePassing."""

    def __init__(self, aggr: Any = "add", flow: str = "source_to_target", node_dim: int = -2,
                 decomposed_layers: int = 1, aggr_kwargs: Any = None):
        super().__init__()
        names = [aggr] if isinstance(aggr, str) else aggr
        if not isinstance(names, (list, tuple)) or not all(a in _REDUCES for a in names) or not names:
            raise bad("aggr", "add, sum, mean, max, min or a list of them", repr(aggr))
        if flow not in ("source_to_target", "target_to_source"):
            raise bad("flow", "source_to_target or target_to_source", repr(flow))
        if node_dim not in (-2, 0) or decomposed_layers != 1 or aggr_kwargs:
            raise ArgumentError("node_dim is -2 or 0, decomposed_layers 1, and aggr_kwargs is not taken")
        self.aggr, self.flow, self.node_dim = aggr, flow, node_dim

    def _edges(self, edge_index: Any) -> _Edges:
        return _Edges(edge_index, self.flow)

    def _reduce(self, rows: _edges.Rows, x: Tensor, weight: Optional[Tensor]) -> Tensor:
        """x (..., nodes, channels) of senders, times weights of edges, reduced by receiver."""
        flat = x if x.dim() == 2 else x.movedim(-2, 0).flatten(1)
        names: Sequence[str] = [self.aggr] if isinstance(self.aggr, str) else self.aggr
        parts = [self._one(rows, flat, weight, _REDUCES[a]) for a in names]
        if x.dim() != 2:
            parts = [y.unflatten(1, (*x.shape[:-2], x.shape[-1])).movedim(0, -2) for y in parts]
        return parts[0] if len(parts) == 1 else torch.cat(parts, -1)

    def _one(self, rows: _edges.Rows, x: Tensor, weight: Optional[Tensor], reduce: str) -> Tensor:
        if weight is None and not rows.bin and x.shape[0] == rows.senders:
            return _message.neighbours("copy_u", rows, "U", x, reduce)
        if weight is None:
            return _message.message(rows, "copy_u", reduce, u=x)
        return _message.message(rows, "u_mul_e", reduce, u=x, e=weight.to(x.dtype))

    def _linear_aggr(self) -> bool:
        return isinstance(self.aggr, str) and _REDUCES[self.aggr] in ("sum", "mean")


def _one_tensor(x: Any, name: str) -> Tensor:
    if not isinstance(x, Tensor):
        raise bad("x", f"one tensor: {name} does not take a pair", describe(x))
    return x


def _pair(x: Features) -> Tuple[Tensor, Optional[Tensor]]:
    return (x, x) if isinstance(x, Tensor) else (x[0], x[1])


class GCNConv(_Conv):
    """X' = D^-1/2 (A + I) D^-1/2 X W + b, where A has the weights of edges and D the sums of its rows."""

    def __init__(self, in_channels: int, out_channels: int, improved: bool = False, cached: bool = False,
                 add_self_loops: Optional[bool] = None, normalize: bool = True, bias: bool = True, **kwargs: Any):
        super().__init__(**{"aggr": "add", **kwargs})
        add_self_loops = normalize if add_self_loops is None else add_self_loops
        if add_self_loops and not normalize:
            raise ValueError("GCNConv: add_self_loops needs normalize=True")
        check_counts(in_channels, out_channels=out_channels)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.improved, self.cached = improved, cached
        self.add_self_loops, self.normalize = add_self_loops, normalize
        self.weft_cached: Any = None
        self.lin = linear(in_channels, out_channels, False, glorot)
        self.bias = Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()
        zeros(self.bias)
        self.weft_cached = None

    def _norm(self, edge_index: Any, weight: Optional[Tensor], n: int, like: Tensor) -> tuple:
        """Rows, weights of edges, and the factors of nodes."""
        edges = self._edges(edge_index)
        _check_of_edges("edge_weight", weight, edges)
        weight = edges.weight if weight is None else weight
        fill, loops = 2.0 if self.improved else 1.0, 0
        if self.add_self_loops and edges.matrix:
            edges, weight = edges.with_loops(n, weight, fill)
        elif self.add_self_loops:
            loops = 2
            if weight is not None:
                weight = torch.cat([weight, weight.new_full((n,), fill)])
        rows = edges.rows(n, n, loops)
        if weight is None:
            last = rows.start[n:n + 1] if rows.bin else rows.start[n:]
            degree = torch.cat([rows.start[:n], last]).diff().to(like.dtype)
        else:
            degree = _message.message(rows, "copy_e", "sum", e=weight)
        factor = degree.pow(-0.5)
        return rows, weight, factor.masked_fill(factor == math.inf, 0)

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Optional[Tensor] = None) -> Tensor:
        _check_features("x", _one_tensor(x, "GCNConv"), self.in_channels, self.lin.weight)
        n = x.shape[-2]
        if not self.normalize:
            edges = self._edges(edge_index)
            _check_of_edges("edge_weight", edge_weight, edges)
            weight = edges.weight if edge_weight is None else edge_weight
            out = self._reduce(edges.rows(n, n), self.lin(x), weight)
        else:
            found = self.__dict__.get("weft_cached")
            if found is None:
                found = self._norm(edge_index, edge_weight, n, x)
                self.weft_cached = found if self.cached else None
            rows, weight, factor = found
            column = factor.to(x.dtype).unsqueeze(-1)
            out = self._reduce(rows, self.lin(x) * column, weight) * column
        return _add(out, self.bias)

    def __repr__(self) -> str:
        return f"GCNConv({self.in_channels}, {self.out_channels})"


class SAGEConv(_Conv):
    """x_i' = W_l (the mean over senders j of x_j) + b + W_r x_i."""

    def __init__(self, in_channels: Union[int, Tuple[int, int]], out_channels: int,
                 aggr: Union[str, List[str], None] = "mean", normalize: bool = False, root_weight: bool = True,
                 project: bool = False, bias: bool = True, **kwargs: Any):
        super().__init__(aggr, **kwargs)
        check_counts(in_channels, out_channels=out_channels)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.normalize, self.root_weight, self.project = normalize, root_weight, project
        pair = (in_channels, in_channels) if isinstance(in_channels, int) else in_channels
        if project:
            if pair[0] <= 0:
                raise ValueError("SAGEConv: project=True needs in_channels")
            self.lin = linear(pair[0], pair[0])
        many = 1 if isinstance(aggr, str) else len(self.aggr)
        self.lin_l = linear(pair[0] * many if pair[0] > 0 else -1, out_channels, bias)
        if root_weight:
            self.lin_r = linear(pair[1], out_channels, False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for each in self.children():
            each.reset_parameters()

    def forward(self, x: Features, edge_index: Any, size: Optional[Tuple[int, int]] = None) -> Tensor:
        _check_all(x, self.in_channels, self.lin_l.weight)
        left, right = _pair(x)
        if self.project:
            left = self.lin(left).relu()
        edges = self._edges(edge_index)
        receivers = right.shape[-2] if right is not None else size[1] if size else left.shape[-2]
        rows = edges.rows(receivers, left.shape[-2])
        out = self._maps(left, right if self.root_weight else None, rows, edges.weight)
        return functional.normalize(out, p=2.0, dim=-1) if self.normalize else out

    def _maps(self, left: Tensor, right: Optional[Tensor], rows: _edges.Rows, weight: Optional[Tensor]) -> Tensor:
        """Both linear maps and the reduction between, with few arrays of all nodes: one product makes what is
        reduced and what is added to it, or the second product is added to the first."""
        of = [self.lin_l.weight, *([] if right is None else [self.lin_r.weight])]
        if any(isinstance(w, UninitializedParameter) for w in of):
            out = self.lin_l(self._reduce(rows, left, weight))
            return out if right is None else _add(out, self.lin_r(right))
        if not self._linear_aggr() or of[0].shape[0] >= of[0].shape[1]:
            if right is None:
                return self.lin_l(self._reduce(rows, left, weight))
            out = apply_linear(right, of[1], self.lin_l.bias)
            return _add_product(out, self._reduce(rows, left, weight), of[0].t())
        if left is right and left.dim() == 2 and weight is None:  # less to gather after the product
            both = apply_linear(left, torch.cat(of)).unflatten(-1, (2, -1))
            reduce = _REDUCES[str(self.aggr)]
            return _add(_message.neighbours("sage", rows, "H", both, reduce), self.lin_l.bias)
        left = apply_linear(left, of[0])
        out = self._reduce(rows, left, weight)
        return _add(_add(out, None if right is None else apply_linear(right, of[1])), self.lin_l.bias)

    def __repr__(self) -> str:
        return f"SAGEConv({self.in_channels}, {self.out_channels}, aggr={self.aggr})"


class _Attention(_Conv):
    """What GATConv and GATv2Conv share."""

    def __init__(self, in_channels: Any, out_channels: int, heads: int, concat: bool, negative_slope: float,
                 dropout: float, add_self_loops: bool, edge_dim: Optional[int], fill_value: Any, bias: bool,
                 residual: bool, **kwargs: Any):
        super().__init__(**{"node_dim": 0, **kwargs})
        if self.aggr not in ("add", "sum"):
            raise bad("aggr", "add: weights of attention are summed", repr(self.aggr))
        check_counts(in_channels, out_channels=out_channels, heads=heads)
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.concat, self.negative_slope, self.dropout = concat, negative_slope, dropout
        self.add_self_loops, self.edge_dim, self.fill_value = add_self_loops, edge_dim, fill_value
        self.residual = residual
        self.lin_edge = None if edge_dim is None else linear(edge_dim, heads * out_channels, False, glorot)
        total = out_channels * (heads if concat else 1)
        last = in_channels if isinstance(in_channels, int) else in_channels[1]
        self.res = linear(last, total, False, glorot) if residual else None
        self.bias = Parameter(torch.empty(total)) if bias else None

    def reset_parameters(self) -> None:
        for each in self.children():
            each.reset_parameters()
        for name, each in self.named_parameters(recurse=False):
            zeros(each) if name == "bias" else glorot(each)

    def _attributes(self, edges: _Edges, attr: Optional[Tensor], receivers: int, both: int) -> Optional[Tensor]:
        """Features of edges, with those of loops."""
        if attr is None or self.lin_edge is None:
            return None
        _check_of_edges("edge_attr", attr, edges, int(self.edge_dim or 0), self.lin_edge.weight)
        attr = attr.unsqueeze(-1) if attr.dim() == 1 else attr
        if not self.add_self_loops:
            return attr
        if isinstance(self.fill_value, str):
            senders, to = edges.tensor()
            to = torch.where(senders == to, receivers, to).unsqueeze(-1).expand_as(attr)
            how = {"add": "sum", "sum": "sum", "mean": "mean", "min": "amin", "max": "amax", "mul": "prod"}
            if self.fill_value not in how:
                raise bad("fill_value", "a number, a tensor, or " + ", ".join(how), repr(self.fill_value))
            begin = attr.new_ones if self.fill_value == "mul" else attr.new_zeros
            loops = begin((receivers + 1, attr.shape[1])).scatter_reduce(
                0, to, attr, how[self.fill_value], include_self=self.fill_value == "mul")[:both]
        else:
            fill = torch.as_tensor(self.fill_value, dtype=attr.dtype)
            loops = fill.expand(both, attr.shape[1])
        return torch.cat([attr, loops])

    def _attend(self, op: Any, operands: tuple, edges: _Edges, rows: _edges.Rows, scores: Optional[Tensor],
                both: int, return_attention_weights: Any) -> Any:
        mask = None
        x = operands[-1]
        if self.training and self.dropout > 0:
            mask = functional.dropout(x.new_ones(rows.edges, self.heads), self.dropout)
        out = op(rows, *operands, self.negative_slope, G=scores, F=mask, weights=bool(return_attention_weights))
        if not return_attention_weights:
            return out, None
        out, weights = out
        index = edges.tensor()
        if self.add_self_loops:
            stay = index[0] != index[1]
            n = index.shape[1]
            nodes = torch.arange(both, dtype=index.dtype)
            index = torch.cat([index[:, stay], nodes.expand(2, both)], 1)
            weights = torch.cat([weights[:n][stay], weights[n:]])
        if self.flow == "target_to_source":
            index = index.flip(0)
        return out, (index, weights)

    def _finish(self, out: Tensor, res: Optional[Tensor], weights: Any) -> Any:
        out = out.flatten(1) if self.concat else out.mean(1)
        out = _add(_add(out, res), self.bias)
        return out if weights is None else (out, weights)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, heads={self.heads})"


class GATConv(_Attention):
    """x_i' = the sum over edges of softmax(leaky_relu(a_dst . W x_i + a_src . W x_j + a_edge . W_e e_ij)) W x_j."""

    def __init__(self, in_channels: Union[int, Tuple[int, int]], out_channels: int, heads: int = 1,
                 concat: bool = True, negative_slope: float = 0.2, dropout: float = 0.0,
                 add_self_loops: bool = True, edge_dim: Optional[int] = None,
                 fill_value: Union[float, Tensor, str] = "mean", bias: bool = True, residual: bool = False,
                 **kwargs: Any):
        super().__init__(in_channels, out_channels, heads, concat, negative_slope, dropout, add_self_loops,
                         edge_dim, fill_value, bias, residual, **kwargs)
        self.lin = self.lin_src = self.lin_dst = None
        wide = heads * out_channels
        if isinstance(in_channels, int):
            self.lin = linear(in_channels, wide, False, glorot)
        else:
            self.lin_src = linear(in_channels[0], wide, False, glorot)
            self.lin_dst = linear(in_channels[1], wide, False, glorot)
        self.att_src = Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = Parameter(torch.empty(1, heads, out_channels))
        self.att_edge = None if edge_dim is None else Parameter(torch.empty(1, heads, out_channels))
        self.reset_parameters()

    def _heads(self, x: Features) -> Tuple[Tensor, Optional[Tensor]]:
        shape = (-1, self.heads, self.out_channels)
        left, right = _pair(x)
        if self.lin is not None:
            src = self.lin(left).view(shape)
            if isinstance(x, Tensor):
                return src, src
            return src, None if right is None else self.lin(right).view(shape)
        return self.lin_src(left).view(shape), None if right is None else self.lin_dst(right).view(shape)

    def forward(self, x: Features, edge_index: Any, edge_attr: Optional[Tensor] = None,
                size: Optional[Tuple[int, int]] = None, return_attention_weights: Optional[bool] = None) -> Any:
        _check_all(x, self.in_channels, self.att_src, plain=True)
        right = _pair(x)[1]
        res = self.res(right) if self.res is not None and right is not None else None
        src, dst = self._heads(x)
        edges = self._edges(edge_index)
        receivers = dst.shape[0] if dst is not None else size[1] if size else src.shape[0]
        both = min(size) if size is not None else min(receivers, src.shape[0])
        rows = edges.rows(receivers, src.shape[0], int(self.add_self_loops))
        to = src.new_zeros(receivers, self.heads) if dst is None else (dst * self.att_dst).sum(-1)
        attr = self._attributes(edges, edge_attr, receivers, both)
        scores = None
        if attr is not None:  # a_edge . (W_e e) = (a_edge W_e) . e
            each = self.lin_edge.weight.view(self.heads, self.out_channels, -1) * self.att_edge[0].unsqueeze(-1)
            scores = attr @ each.sum(1).t()
        out, weights = self._attend(_message.gat, (to, (src * self.att_src).sum(-1), src), edges, rows, scores,
                                    both, return_attention_weights)
        return self._finish(out, res, weights)


class GATv2Conv(_Attention):
    """x_i' = the sum over edges of softmax(a . leaky_relu(W_r x_i + W_l x_j + W_e e_ij)) W_l x_j."""

    def __init__(self, in_channels: Union[int, Tuple[int, int]], out_channels: int, heads: int = 1,
                 concat: bool = True, negative_slope: float = 0.2, dropout: float = 0.0,
                 add_self_loops: bool = True, edge_dim: Optional[int] = None,
                 fill_value: Union[float, Tensor, str] = "mean", bias: bool = True, share_weights: bool = False,
                 residual: bool = False, **kwargs: Any):
        super().__init__(in_channels, out_channels, heads, concat, negative_slope, dropout, add_self_loops,
                         edge_dim, fill_value, bias, residual, **kwargs)
        self.share_weights = share_weights
        pair = (in_channels, in_channels) if isinstance(in_channels, int) else in_channels
        self.lin_l = linear(pair[0], heads * out_channels, bias, glorot)
        self.lin_r = self.lin_l if share_weights else linear(pair[1], heads * out_channels, bias, glorot)
        self.att = Parameter(torch.empty(1, heads, out_channels))
        self.reset_parameters()

    def forward(self, x: Features, edge_index: Any, edge_attr: Optional[Tensor] = None,
                return_attention_weights: Optional[bool] = None) -> Any:
        _check_all(x, self.in_channels, self.att, plain=True)
        left, right = _pair(x)
        if right is None:
            raise bad("x", "features of receivers too", "None")
        shape = (-1, self.heads, self.out_channels)
        src = self.lin_l(left).view(shape)
        dst = src if self.share_weights and isinstance(x, Tensor) else self.lin_r(right).view(shape)
        edges = self._edges(edge_index)
        both = min(dst.shape[0], src.shape[0])
        rows = edges.rows(dst.shape[0], src.shape[0], int(self.add_self_loops))
        attr = self._attributes(edges, edge_attr, dst.shape[0], both)
        scores = None if attr is None else self.lin_edge(attr).view(shape)
        out, weights = self._attend(_message.gatv2, (self.att[0], dst, src), edges, rows, scores, both,
                                    return_attention_weights)
        return self._finish(out, self.res(right) if self.res is not None else None, weights)


class RGCNConv(_Conv):
    """x_i' = W_root x_i + b + the sum over relations r of W_r (the mean over senders j by r of x_j)."""

    def __init__(self, in_channels: Union[int, Tuple[int, int]], out_channels: int, num_relations: int,
                 num_bases: Optional[int] = None, num_blocks: Optional[int] = None, aggr: str = "mean",
                 root_weight: bool = True, is_sorted: bool = False, bias: bool = True, **kwargs: Any):
        super().__init__(**{"aggr": aggr, "node_dim": 0, **kwargs})
        if self.aggr not in ("add", "sum", "mean", "max"):
            raise bad("aggr", "add, mean or max", repr(self.aggr))
        if num_bases is not None and num_blocks is not None:
            raise ValueError("RGCNConv: num_bases and num_blocks exclude each other")
        check_counts(in_channels, out_channels=out_channels, num_relations=num_relations)
        self.in_channels, self.out_channels, self.num_relations = in_channels, out_channels, num_relations
        self.num_bases, self.num_blocks, self.is_sorted = num_bases, num_blocks, is_sorted
        pair = (in_channels, in_channels) if isinstance(in_channels, int) else in_channels
        self.in_channels_l = pair[0]
        first, blocks = num_bases or num_relations, num_blocks
        if blocks is not None and (pair[0] % blocks or out_channels % blocks):
            raise bad("num_blocks", f"a divisor of {pair[0]} and {out_channels}", blocks)
        shape = (first, pair[0], out_channels) if blocks is None else \
            (first, blocks, pair[0] // blocks, out_channels // blocks)
        self.weight = Parameter(torch.empty(shape))
        self.comp = None if num_bases is None else Parameter(torch.empty(num_relations, num_bases))
        self.root = Parameter(torch.empty(pair[1], out_channels)) if root_weight else None
        self.bias = Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        glorot(self.weight)
        glorot(self.comp)
        glorot(self.root)
        zeros(self.bias)

    def _rows_of(self, edges: _Edges, type: Tensor, index: Tensor, receivers: int) -> Tensor:
        """Senders that have row `index` of each W_r in place of features."""
        if self.num_blocks is not None:
            raise ValueError("RGCNConv: num_blocks needs features, not the numbers of nodes")
        weight = self.weight if self.comp is None else torch.einsum("rb,bco->rco", self.comp, self.weight)
        ends = edges.tensor()
        table = torch.stack([type * self.in_channels_l + index[ends[0]], ends[1]])
        rows = _edges.rows(table, receivers, self.num_relations * self.in_channels_l, 0, torch=True)
        one = None
        if self.aggr == "mean":
            pair = type * receivers + ends[1]
            count = torch.zeros(self.num_relations * receivers, dtype=weight.dtype)
            count = count.index_add(0, pair, torch.ones(pair.shape, dtype=weight.dtype))
            one = count[pair].reciprocal()
        elif self.aggr == "max":
            raise bad("aggr", "add or mean, where nodes have numbers in place of features", "max")
        return self._one(rows, weight.flatten(0, 1), one, "sum")

    def forward(self, x: Any, edge_index: Any, edge_type: Optional[Tensor] = None) -> Tensor:
        left, right = (x[0], x[1]) if isinstance(x, tuple) and len(x) == 2 else (x, x)
        if left is None:
            left = torch.arange(self.in_channels_l)
            right = left if right is None else right
        if isinstance(right, Tensor) and not right.is_floating_point():
            for each in (left, right):
                if not isinstance(each, Tensor) or each.dim() != 1 or each.dtype not in (torch.int32, torch.int64):
                    raise bad("x", "features of nodes, or their numbers, int64 (nodes)", describe(each))
        else:
            _check_all(x, self.in_channels, self.weight, plain=True)
        edges = self._edges(edge_index)
        edge_type = edges.weight if edge_type is None and edges.matrix else edge_type
        if not isinstance(edge_type, Tensor) or edge_type.dim() != 1:
            raise bad("edge_type", "a tensor, the relation of each edge", describe(edge_type))
        if right.is_floating_point():
            tiles = _edges.Tiles(edges.index, edge_type.long(), self.num_relations, (right.shape[0], left.shape[0]))
            out = _message.rgms(tiles, left, self.weight, _REDUCES[self.aggr], comp=self.comp)
        else:
            out = self._rows_of(edges, edge_type.long(), left, right.shape[0])
        if self.root is not None and right.is_floating_point():
            out = _add_product(out, right, self.root)
        elif self.root is not None:
            out = _add(out, self.root[right])
        return _add(out, self.bias)

    def __repr__(self) -> str:
        return f"RGCNConv({self.in_channels}, {self.out_channels}, num_relations={self.num_relations})"
