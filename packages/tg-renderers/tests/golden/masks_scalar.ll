define void @kernel(ptr %buffers, ptr %vals, i64 %begin, i64 %end) nounwind {
entry:
  %v1 = getelementptr ptr, ptr %buffers, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v6 = getelementptr ptr, ptr %buffers, i64 1
  %v7 = load ptr, ptr %v6, align 8
  %v12 = alloca i64, align 8
  store i64 0, ptr %v12, align 8
  %v17 = alloca i64, align 8
  br label %start
start:
  br label %loop1
loop1:
  %v3 = phi i64 [ 0, %start ], [ %v19, %loop1 ]
  %v4 = srem i64 %v3, 3
  %v5 = icmp ne i64 %v4, 2
  %v8 = icmp slt i64 %v3, 1
  %v9 = xor i1 %v8, true
  %v10 = getelementptr float, ptr %v7, i64 %v3
  %v11 = getelementptr float, ptr %v10, i64 -1
  %v13 = select i1 %v9, ptr %v11, ptr %v12
  %v14 = load float, ptr %v13, align 4
  %v15 = select i1 %v9, float %v14, float 0xC01C000000000000
  %v16 = getelementptr float, ptr %v2, i64 %v3
  %v18 = select i1 %v5, ptr %v16, ptr %v17
  store float %v15, ptr %v18, align 4
  %v19 = add nsw i64 %v3, 1
  %v20 = icmp slt i64 %v19, 48
  br i1 %v20, label %loop1, label %done2
done2:
  ret void
}
